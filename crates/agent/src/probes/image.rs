// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `image`: the user and the system time that `ImageMagick` takes to scale an image.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use punctual_model::probe::{ProbeInfo, Shape, View};
use punctual_model::{Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::program::{MEASURED, not_started, run_once};
use super::{Context, Measurement, Probe, parameters, within};
use crate::loads::spawn;
use crate::rt::Settings;
use crate::scratch::PrivateDirectory;
use crate::sink::Sink as _;
use crate::status_page::{self, SeenRecorder};
use crate::sys::process::{self, Ended};
use crate::sys::time;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "image",
    summary: "user and system time of ImageMagick scaling a 3264x2448 image to 1024x768",
    parse: |table| parameters::<Image>(table, Image::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Work, "image"),
    scope: Err("is the time that whole programs take, which is throughput, not a latency"),
};

const WIDTH: u32 = 3_264;
const HEIGHT: u32 = 2_448;
const SCALED: &str = "1024x768";

/// The program, under its names in version 6 and in version 7.
const PROGRAMS: [&str; 2] = ["convert", "magick"];

/// The command given to `convert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Command {
    /// Scale the image: `-resize`.
    Resize,
    /// The published command, word for word. It says `-size`, which holds for images that
    /// are read after it, and so copies the image without scaling it.
    AsPublished,
}

/// The longest delay of an execution, so that it begins anywhere in the longest tick.
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Image {
    /// The number of conversions.
    samples: u32,
    /// The command that converts.
    command: Command,
    /// The directory for the images; it should be in the kernel's memory, or the disk counts too.
    directory: PathBuf,
}

impl Default for Image {
    fn default() -> Self {
        Self {
            samples: 10,
            command: Command::Resize,
            directory: "/tmp".into(),
        }
    }
}

impl Image {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000)
    }

    fn command(&self, program: &str, images: &Images) -> Vec<String> {
        let (source, scaled) = (images.source(), images.scaled());
        let (source, scaled) = (source.to_string_lossy(), scaled.to_string_lossy());
        let words = match self.command {
            Command::Resize => [program, &source, "-resize", SCALED, &scaled],
            Command::AsPublished => [program, &source, "-size", SCALED, &scaled],
        };
        words.map(str::to_owned).to_vec()
    }

    fn dimensions(&self) -> &'static str {
        match self.command {
            Command::Resize => "1024 768",
            Command::AsPublished => "3264 2448",
        }
    }
}

impl Measurement for Image {
    fn nominal(&self) -> Nanos {
        Nanos::ZERO
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let (program, version) = find()?;
        let images = Images::new(&self.directory)?;
        let command = self.command(program, &images);
        let samples = self.samples as usize;
        let mut user = SeenRecorder::new(samples, self.samples.into());
        let mut system = Recorder::new(samples);
        let begin = time::now();
        for _ in 0..self.samples {
            // The kernel divides the time into user and system by what each tick meets.
            time::sleep(context.phases.below(LONGEST_PHASE));
            let at = time::now() - begin;
            let ended = convert(&command);
            if status_page::is_stop_requested() {
                break;
            }
            let ended = ended?;
            images.verify(self.dimensions())?;
            user.record(at, ended.user);
            system.record(at, ended.system);
        }
        let settings = Settings::from([
            ("command".into(), command.join(" ").into()),
            ("version".into(), version.into()),
        ]);
        let variant = |time: &str| match self.command {
            Command::Resize => time.to_owned(),
            Command::AsPublished => format!("{time}, as published"),
        };
        let user = user.finish(RecordingKey::of_variant(variant("user")));
        let system = system.finish(RecordingKey::of_variant(variant("system")));
        let mut recordings = vec![user, system];
        for recording in &mut recordings {
            recording.settings.clone_from(&settings);
        }
        Ok(recordings)
    }
}

/// Finds the program, and the version that it reports.
fn find() -> Result<(&'static str, String), Reason> {
    let mut reason = String::new();
    for program in PROGRAMS {
        match run_once(&[program.to_owned(), "-version".to_owned()]) {
            Ok(text) if text.starts_with("Version: ImageMagick") => {
                let line = text.lines().next().unwrap_or_default();
                return Ok((program, line["Version: ".len()..].to_owned()));
            }
            Ok(_) => reason = format!("{program} is not ImageMagick's"),
            Err(error) if reason.is_empty() => reason = error.to_string(),
            Err(_) => {}
        }
    }
    Err(
        format!("{reason}: install imagemagick (in a guest: put it among the suite's programs)")
            .into(),
    )
}

fn convert(command: &[String]) -> Result<Ended, Reason> {
    let named = |what: &dyn std::fmt::Display| format!("{}: {what}", command.join(" "));
    let child = spawn(command).map_err(|error| not_started(command, &error))?;
    MEASURED.led_by(process::id(&child));
    let (ended, _) = MEASURED.wait().map_err(|error| named(&error))?;
    if ended.status.success() {
        Ok(ended)
    } else {
        let hint = "in a guest it needs its modules pnm.la and pnm.so too";
        Err(named(&format!("{} ({hint})", ended.status)).into())
    }
}

/// The image and its conversion, in a directory that is removed at the end.
struct Images {
    directory: PrivateDirectory,
}

impl Images {
    /// Draws the image.
    fn new(parent: &Path) -> Result<Self, Reason> {
        let directory = PrivateDirectory::new_in(parent);
        let directory = directory.map_err(|error| format!("{}: {error}", parent.display()))?;
        let images = Self { directory };
        let failed = |error| format!("{}: {error}", images.source().display());
        let file = File::create(images.source()).map_err(failed)?;
        draw(&mut BufWriter::new(file), WIDTH, HEIGHT).map_err(failed)?;
        Ok(images)
    }

    fn source(&self) -> PathBuf {
        self.directory.path().join("test-3264x2448.ppm")
    }

    fn scaled(&self) -> PathBuf {
        self.directory.path().join("test-1024x768.ppm")
    }

    /// Verifies that the result is an image of this size, and then removes it.
    fn verify(&self, dimensions: &str) -> Result<(), Reason> {
        let path = self.scaled();
        let named = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let mut head = [0; 16];
        let length = File::open(&path)
            .and_then(|mut file| file.read(&mut head))
            .map_err(|error| named(&error))?;
        let found = String::from_utf8_lossy(&head[..length]).into_owned();
        if !found.starts_with(&format!("P6\n{dimensions}\n")) {
            return Err(named(&format!("is no image of {dimensions}: {found:?}")).into());
        }
        Ok(fs::remove_file(&path).map_err(|error| named(&error))?)
    }
}

/// Writes a picture as binary PPM: gradients, with a fine pattern that scaling must average.
fn draw(out: &mut impl Write, width: u32, height: u32) -> io::Result<()> {
    write!(out, "P6\n{width} {height}\n255\n")?;
    let mut row = vec![0; width as usize * 3];
    for y in 0..height {
        for (x, pixel) in (0..width).zip(row.chunks_exact_mut(3)) {
            pixel.copy_from_slice(&[(x / 13) as u8, (y / 10) as u8, (x ^ y) as u8]);
        }
        out.write_all(&row)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_a_ppm_of_the_size_it_says() {
        let mut picture = Vec::new();
        draw(&mut picture, 40, 30).unwrap();
        let head = b"P6\n40 30\n255\n";
        assert_eq!(picture.len(), head.len() + 40 * 30 * 3);
        assert!(picture.starts_with(head));
        // The pixel at (13, 10).
        assert_eq!(picture[head.len() + (10 * 40 + 13) * 3..][..3], [1, 1, 7]);
    }

    #[test]
    fn what_is_not_scaled_is_refused_and_nothing_stays() {
        let parent = tempfile::tempdir().unwrap();
        let images = Images::new(parent.path()).unwrap();
        assert!(images.verify("1024 768").is_err());
        fs::copy(images.source(), images.scaled()).unwrap();
        let reason = images.verify("1024 768").unwrap_err().to_string();
        assert!(reason.contains("3264"), "{reason}");
        assert!(images.verify("3264 2448").is_ok());
        assert!(!images.scaled().exists());
        let directory = images.directory.path().to_owned();
        drop(images);
        assert!(!directory.exists());
    }

    #[test]
    fn the_command_is_the_seeds_but_for_one_word() {
        let parent = tempfile::tempdir().unwrap();
        let directory = PrivateDirectory::new_in(parent.path()).unwrap();
        let images = Images { directory };
        let inside = images.directory.path().display().to_string();
        let with = |command| {
            Image {
                command,
                ..Image::default()
            }
            .command("convert", &images)
        };
        let words = "convert /tmp/i/test-3264x2448.ppm -resize 1024x768 /tmp/i/test-1024x768.ppm";
        let shown = with(Command::Resize).join(" ").replace(&inside, "/tmp/i");
        assert_eq!(shown, words);
        assert_eq!(with(Command::AsPublished)[2], "-size");
    }
}
