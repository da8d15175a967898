//! Which vector instructions the kernels may use.

use std::sync::OnceLock;

/// Sets of instructions, each with all of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Instructions {
    /// Those that the compiler takes for granted.
    Portable,
    /// AVX2 and fused multiply-add.
    Avx2,
    /// AVX-VNNI, if the CPU has it: those with AVX-512 may lack it.
    AvxVnni,
    /// AVX-512 F and VL.
    Avx512,
}

/// Lowers the level, so that one machine can show that another would give the same answer: `portable`, `avx2`, `avxvnni` or `avx512`.
const SWITCH: &str = "A2LP_CPU";

impl Instructions {
    /// May the kernels use these?
    pub(crate) fn allowed(self) -> bool {
        static BEST: OnceLock<Instructions> = OnceLock::new();
        let best = BEST.get_or_init(|| match std::env::var(SWITCH).as_deref() {
            Ok("portable") => Instructions::Portable,
            Ok("avx2") => Instructions::found().min(Instructions::Avx2),
            Ok("avxvnni") => Instructions::found().min(Instructions::AvxVnni),
            _ => Instructions::found(),
        });
        self <= *best
    }

    /// What this CPU has.
    fn found() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
                return Instructions::Portable;
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                return Instructions::Avx512;
            }
            Instructions::AvxVnni
        }
        #[cfg(not(target_arch = "x86_64"))]
        Instructions::Portable
    }
}
