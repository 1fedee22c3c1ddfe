// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_duration_is_read_as_cyclictest_and_rtla_read_it() {
    for (word, expected) in [
        ("90", "90"),
        ("+90s", "90"),
        ("90S", "90"),
        ("10m", "10m"),
        ("10M", "600"),
        ("1H", "3600"),
        ("1h0m0s", "3600"),
        ("1h30m", "3600"),
        ("2D", "172800"),
        ("5minutes", "300"),
        ("5 minutes", "5"),
        ("h", "h"),
        ("", ""),
        ("99999999999999999999d1", "99999999999999999999d1"),
    ] {
        assert_eq!(seconds(word), expected, "{word}");
    }
}

#[test]
fn each_form_of_a_duration_is_found() {
    for options in [
        "-D \"24h\"",
        "-D24H",
        "--duration='24H'",
        "--dur 24H",
        "-D\"24h\"",
        "-D \" 24h\"",
        "\"-D 24h\"",
        "--histfile=\"a;b|c\" -D 24h",
        "--histfile 'my file' -D 24h",
        "--histfile=my\\ file -D 24h",
        "--histfile \"\" -D 24h",
        "-D 24h'",
        "'-D' 24h0m",
        "-mqD 24H",
        "-mqD24H",
    ] {
        let plain = CYCLICTEST.plain(&words(&format!("cyclictest -q -p -i5 {options}")).0);
        let command = cyclictest_command::read(&plain).unwrap().unwrap();
        assert_eq!(command.seconds, Some(86_400), "{options}: {plain}");
    }
    let plain = |options: &str| RTLA.plain(&words(&format!("timerlat hist {options}")).0);
    for (options, expected) in [
        ("-nkt trace.txt -d 1H", "-n -k -t -d 3600"),
        ("-kd1m30s -P f:95", "-k -d 60 -P f:95"),
        ("--trace -uP f:95 -b 10", "--trace -u -P f:95 -b 10"),
        ("--dur 1H", "--duration 3600"),
        ("--bucket 1 --no-aa", "--bucket-size 1 --no-aa"),
        (
            "--quiet -d 1m --no-sum --per=500",
            "--quiet -d 1m --no-summary --period=500",
        ),
    ] {
        assert_eq!(plain(options), format!("timerlat hist {expected}"));
        assert_eq!(RTLA.unread(&plain(options)), None, "{options}");
    }
}

#[test]
fn the_first_word_that_is_not_understood_is_named() {
    for (options, word) in [
        ("-q --new-option -i 200", Some("--new-option")),
        ("-q -Z200", Some("-Z200")),
        ("-q -i", Some("-i")),
        ("-q 5 -i 200", Some("5")),
        ("-q --histfile=my file -D 1h", Some("file")),
        ("-q -i 0 -D 1h", Some("-i")),
        ("-qi0", Some("-qi0")),
        ("-q -p 80", None),
    ] {
        let line = format!("cyclictest {options}");
        assert_eq!(CYCLICTEST.unread(&line).as_deref(), word, "{line}");
    }
    assert_eq!(CYCLICTEST.unread("rteval -q").as_deref(), Some("rteval"));
    assert_eq!(CYCLICTEST.unread(""), None);
    for (options, word) in [
        ("-n -p 100 --what -b 1", Some("--what")),
        ("-b 1 -X", Some("-X")),
        ("-p", Some("-p")),
        ("-b 1 and saw", Some("and")),
        ("-b 1 --no 5", Some("--no")),
        ("-b 1 --du 5", Some("--du")),
        ("-n -b 1", None),
        ("", None),
    ] {
        let line = format!("timerlat hist {options}");
        assert_eq!(RTLA.unread(&line).as_deref(), word, "{line}");
    }
}

#[test]
fn what_the_shell_does_with_the_output_is_no_part_of_a_command() {
    for (line, own) in [
        ("a -t 4", &["a", "-t", "4"][..]),
        ("a -t 4 | tee log", &["a", "-t", "4"]),
        ("a -t 2>&1 | tee log", &["a", "-t"]),
        ("a -i200> log", &["a", "-i200"]),
        ("a -q > log -D 24h", &["a", "-q", "-D", "24h"]),
        ("a -q >log 2>&1 -D 24h | tee b", &["a", "-q", "-D", "24h"]),
        ("a -q &>> 'my log' -t 2 & b", &["a", "-q", "-t", "2"]),
        ("a -t 4 > log", &["a", "-t", "4"]),
        ("a -t < \"x", &["a", "-t"]),
        ("a; b", &["a"]),
        ("a -q # all night", &["a", "-q"]),
        ("a \"b;c # d\" '|'", &["a", "b;c # d", "|"]),
        ("a \"24 h' b ' \\", &["a", "24", "h b "]),
        ("a \"24 b ' \\", &["a", "24", "b"]),
        ("a x#y \"\"", &["a", "x#y", ""]),
    ] {
        assert_eq!(words(line).0, own, "{line}");
    }
}

#[test]
fn a_command_ends_where_the_shell_begins_something_else() {
    for (line, rest) in [
        ("a -t 4", ""),
        ("a -t; b", "; b"),
        ("a \\\"b;c\\\" 2>log", ""),
        ("a # b; c", ""),
    ] {
        assert_eq!(&line[words(line).1..], rest, "{line}");
    }
}

#[test]
fn options_that_its_reader_does_not_know_so_are_understood() {
    for (options, expected) in [
        ("-q --dbg_cyclictest --notrace -D 1h", "-q -D 1h"),
        ("-a all -q", "-a -q"),
        ("-qa all", "-q -a"),
        ("--affinity all -q", "--affinity -q"),
        ("-a 0x1 -q", "-a0x1 -q"),
        ("-qa +1", "-q -a+1"),
        ("--affinity 0x1", "--affinity=0x1"),
        ("-a 0,2-3 -t 4", "-a0,2-3 -t 4"),
        ("-D 1h --", "-D 1h"),
    ] {
        let expected = format!("cyclictest {expected}");
        let (text, ..) = first(&format!("$ cyclictest {options}")).unwrap();
        assert_eq!(text, expected, "{options}");
        assert_eq!(CYCLICTEST.unread(&text), None, "{options}");
        assert_eq!(plain_of_json(&format!("./ct {options}")), expected);
    }
    for (options, expected) in [
        ("-C rt -d 1m", "--cgroup=rt -d 1m"),
        ("-kC -d 1m", "-k -C -d 1m"),
        ("--cgroup rt", "--cgroup=rt"),
        ("-d 1m --", "-d 1m"),
    ] {
        let (text, unread, _) = first(&format!("$ rtla timerlat hist {options}")).unwrap();
        assert_eq!(text, format!("timerlat hist {expected}"));
        assert_eq!(unread, None, "{options}");
    }
    for (options, word) in [("-q -- -D 1h", "--"), ("-q all", "all"), ("-t all", "all")] {
        let unread =
            CYCLICTEST.unread(&CYCLICTEST.plain(&words(&format!("cyclictest {options}")).0));
        assert_eq!(unread.as_deref(), Some(word), "{options}");
    }
}

#[test]
fn a_long_command_line_is_read_in_no_time() {
    let line = format!("timerlat hist {}and saw", "-b 1 ".repeat(20_000));
    assert_eq!(RTLA.unread(&line).as_deref(), Some("and"));
}

/// The line that replaces the first one, the first word that is not understood, and whether
/// it is a sentence.
fn first(text: &str) -> Option<(String, Option<String>, bool)> {
    let one = above(text).into_iter().next()?;
    Some((one.text, one.unread, one.measures_nothing))
}

#[test]
fn a_sentence_that_mentions_a_command_is_none() {
    for sentence in [
        "I ran cyclictest -t 4 -i 5 and saw:",
        "I ran ./cyclictest -t 4 -i 5 and saw:",
        "# cyclictest -p 80 on my board",
        "rtla timerlat hist of my board",
        "# rtla timerlat hist -b 1 and saw",
    ] {
        let (_, unread, is_sentence) = first(sentence).unwrap();
        assert!(unread.is_some() && is_sentence, "{sentence}");
    }
    for none in [
        "cyclictest is a program",
        "# rtla timerlat histogram",
        "T: 0\n$ cyclictest -q",
        "{\n$ cyclictest -q",
    ] {
        assert_eq!(first(none), None, "{none}");
    }
}

#[test]
fn a_command_is_one_with_a_path_in_quotes_and_over_several_lines() {
    for (text, expected) in [
        (
            "$ cyclictest -D 24h \\\n -i 200 \\\n-q\nb",
            "-D 24h -i 200 -q",
        ),
        ("$ cyclictest -q \\", "-q"),
        (
            "ssh board '/usr/bin/cyclictest -q -D \"1H\"' | tee log",
            "-q -D 3600",
        ),
        ("sudo ./cyclictest  -mq 2>log", "-m -q"),
        ("I ran \"cyclictest -t 4 -l 5\" and saw:", "-t 4 -l 5"),
        ("<test cmd=\"cyclictest -q -D 10s\" id=\"3\">", "-q -D 10s"),
        ("$ cyclictest -q --histfile=\"a;b\"", "-q --histfile=a_b"),
    ] {
        let expected = format!("cyclictest {expected}");
        assert_eq!(first(text), Some((expected, None, false)), "{text}");
    }
    // Its reader finds it behind a blank only.
    let (text, ..) = first("# cmd=\"cyclictest -q -D 24h\" id=\"3\"").unwrap();
    assert_eq!(text, "# cmd= cyclictest -q -D 24h");
    // The comment keeps its letters, and the command stands where its reader looks for it.
    let (text, ..) = first("# cyclictest run: 'cyclictest -q -D 1H'").unwrap();
    assert_eq!(text, "# cyclictest: run: cyclictest -q -D 3600");
    let (text, ..) = first("# rtla timerlat hist -b 10 -d 1M").unwrap();
    assert_eq!(text, "# rtla timerlat hist -b 10 -d 60");
    for (command, word) in [
        ("root@board:~# cyclictest -q 5", "5"),
        ("I ran cyclictest -q --new", "--new"),
        ("sudo cyclictest -q my file", "my"),
        ("ssh board \"rtla timerlat hist -b 1 my file\"", "my"),
    ] {
        let (_, unread, is_sentence) = first(command).unwrap();
        assert_eq!(
            (unread.as_deref(), is_sentence),
            (Some(word), false),
            "{command}"
        );
    }
}

/// Why 10000 cycles below these lines are no whole measurement.
fn cut(above: &str) -> Option<String> {
    let text = format!(
        "{above}\n# Histogram\n000005 010000\n# Min Latencies: 00005\n\
         # Avg Latencies: 00005\n# Max Latencies: 00005\n# Histogram Overflows: 00000\n"
    );
    read(text.as_bytes()).unwrap().cut_short
}

#[test]
fn a_sentence_above_a_histogram_does_no_harm() {
    for line in [
        "I ran \"cyclictest -q -Sp99 -i200\" and it printed:",
        "Results of 'cyclictest -Smp99 -q' on my board:",
        "Command: cyclictest -Smp99 -q -h 30 (as root)",
        "Test: cyclictest -q -l 10000 -h 30 with hackbench running",
        "  args: cyclictest -q -Smp99 -l10000, kernel 6.12",
        "<test cmd=\"cyclictest -q -Sp99 -D 10s\" id=\"3\">",
        "* cyclictest -q -Smp99 - idle",
        "# cyclictest -q -Smp99 - idle",
        "Under 90% cyclictest -q -p80 showed:",
        "$ cyclictest -q -Smp99 -h 30 -D 10s # over night",
        "$ cyclictest -q --histfile=\"my file\" -D 10s",
        "I ran cyclictest -q -l$LOOPS and saw:",
        "I ran cyclictest -q -p80 here; cyclictest -q and so on",
        "$ cyclictest -q -l 10000 | tee log\n-rw-r--r-- 1 root log",
        "I ran cyclictest -q -p80 and saw:\n- 5 us",
    ] {
        assert_eq!(cut(line), None, "{line}");
    }
    let (.., is_sentence) = first("rtla timerlat hist -h").unwrap();
    assert!(is_sentence);
}

#[test]
fn a_length_beside_the_programs_name_that_no_command_has_leaves_it_open() {
    for line in [
        "cyclictest -q >a\"b;c\" -D 24h",
        "cyclictest: -q -D 24h",
        "cyclictest\n  -q -D 24h",
        "ssh board \"cyclictest -q\" -D 24h",
        "cyclictest.sh -q -D 24h",
        "$CYCLICTEST -q -D24h",
        "cyclictest -q –D 24h",
        "We let cyclictest run (-l 100000000).",
        "./run-cyclictest --duration=24h",
        "ARGS=\"-D 24h\" cyclictest -q $ARGS",
        "ARGS=\"-h 400\" cyclictest -q $ARGS",
        "timeout 24h cyclictest -q",
        "timeout -s INT 24h cyclictest -q",
    ] {
        let cut = cut(line).unwrap_or_default();
        assert!(cut.contains(UNREAD), "{line}: {cut}");
    }
    for line in [
        "cyclictest -q & stress-ng --cpu 4 -l 80",
        "hackbench -l 1000\ncyclictest -q",
        "cyclictest.sh -D 24h\ncyclictest -q -l 10000",
        "cyclictest -q\nstress-ng --vm 2\n-l 80",
        "$ cyclictest -D 10s -q\n$ cyclictest -q -h 100",
    ] {
        let cut = cut(line).unwrap_or_default();
        assert!(!cut.contains(UNREAD), "{line}: {cut}");
    }
}

#[test]
fn a_remark_behind_a_comments_command_does_not_hide_its_length() {
    let (text, unread, is_sentence) = first("# rtla timerlat hist -d 60s - idle").unwrap();
    assert_eq!(
        (text.as_str(), unread),
        ("# rtla timerlat hist -d 60s", None)
    );
    assert!(!is_sentence);
    for line in [
        "# cyclictest -q -Sp99 -D 24h (a remark)",
        "# cyclictest -q -Sp99 -D 24h - idle",
        "cyclictest -q -Sp99 > log -D 24h",
        "I ran cyclictest -q -Sp99 -D 24h and saw:",
        "Results (cyclictest -q -Sp99 -D 24h) in the lab",
        "We used cyclictest -q -Sp99 -l 5000000 under stress-ng",
        "# cyclictest -q -Sp99 \\\n#   -D 24h",
        "# cyclictest -q -Sp99\n# -D 24h",
        "\"cyclictest\" -q -Sp99 -D 24h",
        "\\cyclictest -q -Sp99 -D 24h",
        "**cyclictest -q -Sp99 -D 24h**",
        "cmd:cyclictest -q -Sp99 -D 24h",
    ] {
        let cut = cut(line).unwrap();
        assert!(!cut.contains(UNREAD), "{line}: {cut}");
    }
}

#[test]
fn a_command_that_is_not_understood_is_no_sentence() {
    for before in [
        "root@board:~# ",
        "root@board:~# sudo ",
        "root@board:~# time ",
        "[me@board ~]$ taskset -c 1 ",
        "$ chrt -f 99 ",
        "board% timeout 60 ",
        "# taskset -c 1 ",
        "sudo ",
        "+ ",
        "# ",
        "",
    ] {
        let line = format!("{before}cyclictest -q --histfile=my file -D 24h");
        let why = cut(&line).unwrap_or_default();
        assert!(why.contains("not understood at \"file\""), "{line}: {why}");
    }
    for (line, part) in [
        ("$ cyclictest -q --histfile=\"a;b\" -D 24h", "-D 86400 s"),
        ("$ cyclictest -q -D \"24 h\"", "-D 24 s"),
        ("<test cmd=\"cyclictest -q -D 24h\" id=\"3\">", "-D 86400 s"),
        ("# cmd=\"cyclictest -q -D 24h\"", "-D 86400 s"),
        ("$ cyclictest -q -i 0 -D 24h", "at \"-i\""),
        ("$ cyclictest -q -D $DUR", "at \"$DUR\""),
        ("$ cyclictest -q -l$LOOPS", "at \"-l$LOOPS\""),
        ("$ cyclictest -q -i $INT", "at \"$INT\""),
        ("$ cyclictest -q $OPTS", "at \"$OPTS\""),
        ("cyclictest $OPTS", "at \"$OPTS\""),
        ("Command: cyclictest -q -D $DUR", "at \"$DUR\""),
    ] {
        let why = cut(line).unwrap_or_default();
        assert!(why.contains(part), "{line}: {why}");
    }
}

#[test]
fn a_later_line_outvotes_a_command_only_if_it_is_one() {
    let both = |later: &str| cut(&format!("$ cyclictest -q -l 10000 -h 30 -i 200\n{later}"));
    for later in [
        "cyclictest -q -Z is not known there, so I left it out",
        "$ cyclictest --help",
        "$ cyclictest -h",
        "$ cyclictest --version | head",
        "I ran cyclictest -q --new",
    ] {
        assert_eq!(both(later), None, "{later}");
    }
    for later in [
        "$ cyclictest -q -Z is not known",
        "sudo cyclictest -q -Z5",
        "cyclictest -q --new 5 -D 24h",
        "$ cyclictest -q -D 24h",
    ] {
        assert!(both(later).is_some(), "{later}");
    }
}

#[test]
fn a_variable_of_the_shell_is_not_understood_in_rtlas_line_either() {
    let (_, unread, is_sentence) = first("# rtla timerlat hist -b 1 -d $DUR").unwrap();
    assert_eq!(unread.as_deref(), Some("$DUR"));
    assert!(!is_sentence);
}

#[test]
fn of_several_commands_in_a_line_the_last_one_counts() {
    let last = |line: &str, program: &Program| {
        let found = above(line);
        last(&found, program.name).map(|last| last.text.clone())
    };
    for (line, expected) in [
        (
            "$ cyclictest --version; cyclictest -q -D 24h -h 100",
            "-q -D 24h -h 100",
        ),
        (
            "$ cyclictest -q -l 10000 > /dev/null; sudo ./cyclictest -q -D 24h",
            "-q -D 24h",
        ),
        ("$ cyclictest -q&&cyclictest -q -D 24h", "-q -D 24h"),
        ("ssh board 'cyclictest -q; cyclictest -D 24h'", "-D 24h"),
        ("cyclictest -q -D 24h; cyclictest --help", "-q -D 24h"),
        ("$ cyclictest -q -D 24h & pidof cyclictest -s", "-q -D 24h"),
        ("$ cyclictest -q -D 24h # cyclictest -q", "-q -D 24h"),
        ("<a b=\"cyclictest -D 24h\" c=\"cyclictest -q\">", "-D 24h"),
    ] {
        let expected = format!("cyclictest {expected}");
        assert_eq!(last(line, &CYCLICTEST), Some(expected), "{line}");
    }
    let line = "# rtla timerlat hist --help; rtla timerlat hist -d 24h";
    assert_eq!(last(line, &RTLA).unwrap(), "# rtla timerlat hist -d 24h");
    let why = cut("$ cyclictest --version; cyclictest -q --histfile=my file");
    assert!(why.unwrap().contains("at \"file\""));
    // The readers of both find their own.
    let both = "$ rtla timerlat hist -d 1H; cyclictest -q -D 24h\n";
    let expected = "cyclictest -q -D 24h; timerlat hist -d 3600\n";
    assert_eq!(plain(both, &above(both)), expected);
}

#[test]
fn a_command_goes_on_in_a_line_that_begins_with_an_option() {
    for (text, expected) in [
        (
            "$ cyclictest -m -Sp90 -i200 -h400 -q\n-D 24h\nT: 0\n",
            "cyclictest -m -S -p90 -i200 -h400 -q -D 24h\n\nT: 0\n",
        ),
        (
            "$ cyclictest -q\n    --duration=24H --mainaffinity=0 \\\n -p 80\nand\n",
            "cyclictest -q --duration=86400 --mainaffinity=0 -p 80\n\n\nand\n",
        ),
        (
            "$ rtla timerlat hist -b 1\n-d 24h\n",
            "timerlat hist -b 1 -d 24h\n\n",
        ),
        (
            "$ cyclictest -q\n- idle\n-- x\n",
            "cyclictest -q\n- idle\n-- x\n",
        ),
    ] {
        assert_eq!(plain(text, &above(text)), expected, "{text}");
    }
}

#[test]
fn the_last_command_alone_is_left_and_lines_keep_their_numbers() {
    let text = "$ cyclictest -N -q \\\n -i 5\nI ran cyclictest -l 5 here\n$ cyclictest -D 1H\n\
                as cyclictest -l 5 does\nT: 0\n";
    let expected = "\n\n\ncyclictest -D 3600\n\nT: 0\n";
    assert_eq!(plain(text, &above(text)), expected);
    let sentence = "I ran cyclictest -i 5 here\nT: 0\n";
    assert_eq!(plain(sentence, &above(sentence)), sentence);
    // One that says for how long counts, if there is no command.
    let sentence = "I ran cyclictest -l 5 here\nT: 0\n";
    assert_eq!(plain(sentence, &above(sentence)), "cyclictest -l 5\nT: 0\n");
}

#[test]
fn a_decoded_file_ends_as_the_original_one_does() {
    for original in ["T: 0\n\x1b[AT: 0", "T: 0\n\x1b[AT: 0\n", "a\nb", "a\nb\n"] {
        let text = foreign::decode(original.as_bytes()).unwrap();
        let bytes = encoded(text, original.as_bytes());
        assert_eq!(bytes, original.as_bytes(), "{original:?}");
    }
    let utf16: Vec<u8> = "a\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(encoded("a\n".to_owned(), &utf16), b"a\n");
}

#[test]
fn the_command_line_of_json_is_replaced_where_it_is_read_otherwise() {
    let json = |command: &str| format!("{{\n\"cmdline:\": \"{command}\",\n\"x\": 1 }}\n");
    for (command, expected) in [
        ("cyclictest -q -D 1H", "cyclictest -q -D 3600"),
        ("/bin/cyclictest-2.6 -qD \\\"1h\\\"", "cyclictest -q -D 1h"),
        ("taskset -c 1 cyclictest -q -D 1h", "cyclictest -q -D 1h"),
        (
            "./ct -D 1m --histfile /tmp/cyclictest.hist",
            "cyclictest -D 1m --histfile /tmp/cyclictest.hist",
        ),
        ("./ct -q", "cyclictest -q"),
    ] {
        let text = json(command);
        let (place, own, plain) = in_json(&text).unwrap();
        assert_eq!(plain, format!("\"{expected}\""));
        assert_eq!(text[place], format!("\"{command}\""));
        assert_eq!(own, command.replace('\\', ""));
    }
    for same in [
        "cyclictest -qmSi200 -D 1h",
        "cyclictest -q --new",
        "./ct -q --new",
        "",
    ] {
        assert_eq!(in_json(&json(same)), None, "{same}");
    }
    for command in ["./ct -q --new", "sudo cyclictest-2.6 -q --new"] {
        let unread = CYCLICTEST.unread(&plain_of_json(command));
        assert_eq!(unread.as_deref(), Some("--new"), "{command}");
    }
}

#[test]
fn a_command_in_marks_and_a_length_that_is_no_number_make_no_whole_measurement() {
    for line in [
        "cyclictest \"$@\"",
        "root@b:~# cyclictest\t-D $LENGTH -i1000 -h100",
        "root@b:~# cyclictest -i1000 -h100 -D “24h”",
        "root@b:~# cyclictest -i1000 -D=24h -h100",
        "root@b:~# cyclictest -i1000 -l “86400000”",
        "root@b:~# rtla timerlat hist -d “24h”",
        "root@b:~# rtla timerlat hist -d=24h",
    ] {
        let (_, unread, is_sentence) = first(line).unwrap();
        assert!(unread.is_some() && !is_sentence, "{line}: {unread:?}");
    }
    for line in [
        "`cyclictest -D 24h -i1000 -h100 -q`",
        "root@b:~# cyclictest \"-D\" 24h -i1000",
        "root@b:~# cyclictest\t-D 24h -i1000",
        "(cyclictest -D 24h -i1000 -q )",
    ] {
        let (text, ..) = first(line).unwrap();
        assert!(text.contains("-D 24h"), "{line}: {text}");
    }
}
