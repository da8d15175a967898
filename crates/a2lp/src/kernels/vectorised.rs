//! Plain loops, compiled for the CPU at hand. Nothing is fused or reordered: every instruction set gives the same bits.

#[cfg(target_arch = "x86_64")]
use super::cpu::Instructions;

/// Loops over neighbouring numbers. `run` must be `#[inline(always)]`, or it is compiled for the oldest CPU after all.
pub(crate) trait Loops {
    /// What comes out of them.
    type Output;
    /// Runs them.
    fn run(self) -> Self::Output;
}

/// Runs loops with the widest vectors that this CPU has.
#[inline(always)]
pub(crate) fn vectorised<L: Loops>(loops: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the features are found on this CPU before the function that needs them is called.
        #[allow(unsafe_code)]
        unsafe {
            if Instructions::Avx512.allowed() {
                return avx512(loops);
            }
            if Instructions::Avx2.allowed() {
                return avx2(loops);
            }
        }
    }
    loops.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn avx512<L: Loops>(loops: L) -> L::Output {
    loops.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<L: Loops>(loops: L) -> L::Output {
    loops.run()
}
