# How the tests compile Rust; read by the scripts here. Without debug information and in one go, which
# takes two thirds of the time; panics still name file and line.
export CARGO_TARGET_DIR=$root/build/rust-clients
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
if command -v ld.mold >/dev/null; then export RUSTFLAGS="${RUSTFLAGS:-} -C link-arg=-fuse-ld=mold"; fi
