// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structure of the crates: the uses of files by each other. Files that use each other in a
//! circle can only be understood together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use punctual_tests::markdown::root;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary};

/// The most files in a circle. The present circles are errors beside the things that they report,
/// and the probes beside the session that runs them.
const LARGEST: usize = 8;

/// A module's path within its crate: `gate`, `figures`; empty for the crate itself.
type Module = Vec<String>;
/// The modules that each module uses.
type Uses = BTreeMap<Module, BTreeSet<Module>>;

/// The paths that a file names, from the crate's root on.
struct Named {
    module: Module,
    paths: BTreeSet<Module>,
}

impl Named {
    fn add(&mut self, path: &[String]) {
        let mut base = self.module.clone();
        let mut rest = path;
        match rest.first().map(String::as_str) {
            Some("crate") => {
                base.clear();
                rest = &rest[1..];
            }
            Some("super" | "self") => {}
            _ => return,
        }
        while let Some(word @ ("super" | "self")) = rest.first().map(String::as_str) {
            if word == "super" {
                base.pop();
            }
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        self.paths.insert(base);
    }

    fn add_tree(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) => self.add(&with(&name.ident)),
            syn::UseTree::Rename(name) => self.add(&with(&name.ident)),
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(group) => {
                group
                    .items
                    .iter()
                    .for_each(|one| self.add_tree(one, before));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        // Tests use what they test.
        if module.ident != "tests" && module.content.is_some() {
            self.module.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // What is only shown under a shorter name is not used.
        if matches!(item.vis, syn::Visibility::Inherited) {
            self.add_tree(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words = path.segments.iter().map(|one| one.ident.to_string());
        self.add(&words.collect::<Vec<_>>());
        visit::visit_path(self, path);
    }
}

/// Finds the modules that each module of a crate uses.
fn uses(source: &Path) -> Uses {
    let mut texts = BTreeMap::new();
    read(source, &Module::new(), &mut texts);
    let parsed = texts.iter().map(|(module, text)| {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{module:?}: {error}"));
        let mut named = Named {
            module: module.clone(),
            paths: BTreeSet::new(),
        };
        named.visit_file(&file);
        let files = named.paths.into_iter().filter_map(|mut path| {
            while !texts.contains_key(&path) {
                path.pop()?;
            }
            Some(path)
        });
        // Its own name, and that of the crate, are no other file.
        let others = files.filter(|path| path != module && !path.is_empty());
        (module.clone(), others.collect())
    });
    parsed.collect()
}

fn read(folder: &Path, above: &Module, texts: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let module = [above.as_slice(), &[name.to_owned()]].concat();
        if path.is_dir() {
            read(&path, &module, texts);
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests" {
            let module = if name == "lib" { Module::new() } else { module };
            texts.insert(module, fs::read_to_string(&path).unwrap());
        }
    }
}

/// The modules that each module uses, and what those use, and so on.
fn reached(uses: &Uses) -> Uses {
    let all = uses.keys().map(|module| {
        let mut known = BTreeSet::new();
        let mut next = vec![module];
        while let Some(module) = next.pop() {
            let new = uses[module]
                .iter()
                .filter(|one| known.insert((*one).clone()));
            next.extend(new);
        }
        (module.clone(), known)
    });
    all.collect()
}

/// The circles: sets of modules each of which uses all others, mostly by way of others.
fn circles(uses: &Uses) -> BTreeSet<BTreeSet<Module>> {
    let reached = reached(uses);
    let round = |module: &Module| {
        let own = reached[module].iter();
        let own = own.filter(|other| reached[*other].contains(module));
        own.cloned().collect::<BTreeSet<Module>>()
    };
    let all = uses.keys().map(round);
    all.filter(|circle| circle.len() > 1).collect()
}

#[test]
fn files_of_a_crate_use_each_other_in_no_large_circle() {
    let mut seen = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let source = entry.unwrap().path().join("src");
        if !source.is_dir() {
            continue;
        }
        for circle in circles(&uses(&source)) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let crate_name = source.parent().unwrap().file_name().unwrap().display();
            assert!(
                names.len() <= LARGEST,
                "{crate_name}: {} files use each other in a circle: {}",
                names.len(),
                names.join(", ")
            );
            println!("{crate_name}: {}", names.join(", "));
            seen = names.len().max(seen);
        }
    }
    assert_eq!(
        seen, LARGEST,
        "the largest circle has become smaller: so may its bound"
    );
}

/// Counts chains such as `if let Some(one) = found && one > 1`.
struct LetChains(usize);

impl<'ast> Visit<'ast> for LetChains {
    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let sides = [&*binary.left, &*binary.right];
        let has_let = sides.iter().any(|side| matches!(side, Expr::Let(_)));
        self.0 += usize::from(has_let && matches!(binary.op, BinOp::And(_)));
        visit::visit_expr_binary(self, binary);
    }
}

fn let_chains(text: &str) -> usize {
    let mut chains = LetChains(0);
    chains.visit_file(&syn::parse_file(text).expect("Rust"));
    chains.0
}

/// The oldest Rust that the README promises has none. `tools/lint` compiles with it, which takes
/// long.
#[test]
fn no_file_has_what_the_oldest_rust_cannot_read() {
    let chain = "fn f(a: Option<u8>) { if let Some(b) = a && b > 1 {} }";
    assert_eq!(let_chains(chain), 1);
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains("rust-version = \"1.85\""),
        "1.88 has chains"
    );
    let mut folders = ["crates", "tests", "benches", "fuzz"]
        .map(|name| root().join(name))
        .to_vec();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                assert_eq!(let_chains(&text), 0, "{}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 500, "{seen} files");
}
