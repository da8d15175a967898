//! What computes.

use crate::error::TrainError;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

/// The device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceName {
    /// The processor.
    #[default]
    Cpu,
    /// Any graphics card, through Vulkan; needs the feature `vulkan`.
    Vulkan,
    /// A card of Nvidia's; needs the feature `cuda`.
    Cuda,
}

impl DeviceName {
    /// The words that users write, and their values.
    pub const WORDS: &[(&str, DeviceName)] =
        &[("cpu", DeviceName::Cpu), ("vulkan", DeviceName::Vulkan), ("cuda", DeviceName::Cuda)];

    pub(crate) fn open(self) -> Result<Device, TrainError> {
        match self {
            DeviceName::Cpu => Ok(Device::flex()),
            #[cfg(feature = "vulkan")]
            DeviceName::Vulkan => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            DeviceName::Cuda => Ok(Device::cuda(0)),
            #[allow(unreachable_patterns)]
            DeviceName::Vulkan => Err(TrainError::NoDevice("vulkan")),
            #[allow(unreachable_patterns)]
            DeviceName::Cuda => Err(TrainError::NoDevice("cuda")),
        }
    }
}
