//! What the processor can do.

/// Whether the processor has instructions for AES-GCM, which the library then uses: for AES itself, and for products of polynomials.
pub fn has_aes() -> bool {
    cfg_select! {
        any(target_arch = "x86", target_arch = "x86_64") => {
            std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
        }
        target_arch = "aarch64" => {
            std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    /// The kernel names them alike on all processors on which [`has_aes`](super::has_aes) looks for them.
    #[test]
    fn the_kernel_sees_the_same() {
        let about = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let named = |name: &str| about.split_whitespace().any(|word| word == name);
        let products = ["pclmulqdq", "pmull"].into_iter().any(named);
        assert_eq!(super::has_aes(), named("aes") && products);
    }
}
