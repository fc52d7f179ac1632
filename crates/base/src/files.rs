//! Atomic writes and bounded reads.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Writes `bytes` to `path` atomically; see [`write_atomically_with`].
///
/// ```
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("labels.txt");
/// srf_base::files::write_atomically(&path, b"a\nb\n")?;
/// assert_eq!(std::fs::read(&path)?, b"a\nb\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_atomically_with(path, |out| out.write_all(bytes))
}

/// Writes a file under a temporary name next to `path`, syncs it, renames it and syncs the folder.
///
/// After a crash at any moment, `path` holds either the old file or the new one. On failure the temporary file is
/// removed and the old file stays.
///
/// ```
/// use std::io::Write as _;
/// use srf_base::files::{partial_path, read_text_at_most, write_atomically_with};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("numbers.txt");
/// let n_lines: usize = write_atomically_with(&path, |out| -> std::io::Result<usize> {
///     (0..3).try_for_each(|n| writeln!(out, "{n}"))?;
///     Ok(3)
/// })?;
/// assert_eq!(n_lines, 3);
/// assert_eq!(read_text_at_most(&path, 100)?.as_deref(), Some("0\n1\n2\n"));
/// assert!(!partial_path(&path).exists(), "the temporary file was renamed");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_atomically_with<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let partial = partial_path(path);
    let result = write_and_rename(&partial, path, write);
    if result.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&partial);
    }
    result
}

fn write_and_rename<T, E: From<io::Error>>(
    partial: &Path,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(partial)?);
    let value = write(&mut out)?;
    let file = out.into_inner().map_err(|error| E::from(error.into_error()))?;
    file.sync_all()?;
    drop(file);
    fs::rename(partial, path)?;
    sync_folder_of(path)?;
    Ok(value)
}

/// The temporary name under which a file or a folder is written before it is renamed to `path`.
///
/// It is in the same folder, so that renaming stays on one file system.
pub fn partial_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".partial");
    name.into()
}

/// Syncs the folder that contains `path`, so that a rename survives a power cut.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// let [draft, path] = ["draft", "model"].map(|name| dir.path().join(name));
/// std::fs::create_dir(&draft)?;
/// std::fs::rename(&draft, &path)?;
/// srf_base::files::sync_folder_of(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|_| cfg!(unix)) else { return Ok(()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// Reads at most `limit` bytes of a file; `None` if it has more.
///
/// ```
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("list.txt");
/// std::fs::write(&path, "four")?;
/// assert_eq!(srf_base::files::read_at_most(&path, 4)?, Some(b"four".to_vec()));
/// assert_eq!(srf_base::files::read_at_most(&path, 3)?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(limit.saturating_add(1));
    file.read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Like [`read_at_most`], for text; text that is not UTF-8 is an [`io::ErrorKind::InvalidData`] error.
pub fn read_text_at_most(path: &Path, limit: u64) -> io::Result<Option<String>> {
    read_at_most(path, limit)?.map(text).transpose()
}

/// Bytes as text; if they are not UTF-8, that is an [`io::ErrorKind::InvalidData`] error.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {at} is not UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_keeps_the_old_file_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weights");
        write_atomically(&path, b"old").unwrap();
        let failed: io::Result<()> = write_atomically_with(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn text_that_is_not_utf8_names_the_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        fs::write(&path, b"ab\xff").unwrap();
        assert_eq!(read_text_at_most(&path, 10).unwrap_err().to_string(), "byte 2 is not UTF-8");
        assert_eq!(read_text_at_most(&path, 2).unwrap(), None);
    }
}
