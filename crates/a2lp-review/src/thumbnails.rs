//! Photos, made smaller before they are sent. Builds that cannot decode images send them as they are.

use std::path::Path;

/// Smaller versions of image files.
#[derive(Default)]
pub(crate) struct Thumbnails {
    #[cfg(feature = "images")]
    kept: std::sync::Mutex<Kept>,
}

/// Small pictures that were made already.
#[cfg(feature = "images")]
#[derive(Default)]
struct Kept {
    small: std::collections::HashMap<usize, Vec<u8>>,
    bytes: usize,
}

#[cfg(not(feature = "images"))]
impl Thumbnails {
    pub(crate) fn smaller(&self, _: usize, _: &Path, _: bool) -> Option<Vec<u8>> {
        None
    }
}

#[cfg(feature = "images")]
impl Thumbnails {
    /// Pixels a side of a small picture, and of a large one.
    const SIDES: (usize, usize) = (224, 1024);
    /// Most bytes of small pictures that are kept.
    const MAX_BYTES: usize = 64 << 20;

    /// The picture of an item as a JPEG; `None` if the file cannot be decoded.
    pub(crate) fn smaller(&self, item: usize, path: &Path, is_small: bool) -> Option<Vec<u8>> {
        let kept = || self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(jpeg) = is_small.then(|| kept().small.get(&item).cloned()).flatten() {
            return Some(jpeg);
        }
        let side = if is_small { Self::SIDES.0 } else { Self::SIDES.1 };
        let jpeg = a2lp_data::images::thumbnail(path, side).ok()?;
        if is_small {
            let mut kept = kept();
            if kept.bytes + jpeg.len() > Self::MAX_BYTES {
                *kept = Kept::default();
            }
            kept.bytes += jpeg.len();
            kept.small.insert(item, jpeg.clone());
        }
        Some(jpeg)
    }
}
