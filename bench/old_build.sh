# Builds another commit for ./bench.sh --against; bench.sh reads this file and has `build`.

# make_old_tree HASH FOLDER: a work tree of the commit. Uses an existing work tree again; replaces a
# folder that an interrupted run left incomplete.
make_old_tree() {
  local hash=$1 folder=$2
  git worktree prune
  # Inside a folder that is no work tree git would speak of the tree around it.
  if [[ -e $folder/.git && $(git -C "$folder" rev-parse HEAD 2>/dev/null) == "$hash" ]] &&
    git -C "$folder" checkout --quiet --force HEAD -- . && git -C "$folder" clean --quiet -fd; then
    return
  fi
  git worktree remove --force "$folder" 2>/dev/null || rm -rf "$folder"
  git worktree prune
  mkdir -p "${folder%/*}"
  git worktree add --quiet --detach --force "$folder" "$hash"
}

# build_old FOLDER TARGET...: with the program that the commit has under bench/. Where that does not
# compile, the one of the working tree is tried with the commit's sources.
build_old() {
  local folder=$1
  # Trees of different commits have most objects in common; ccache then must not look at folders.
  export CCACHE_BASEDIR=$root/$folder CCACHE_NOHASHDIR=1
  if build "$@"; then return; fi
  [[ $2 == bench_* ]] || return 1
  echo "$2 of this commit does not compile: trying that of the working tree." >&2
  rm -rf "$folder/bench"
  cp -r bench "$folder/bench"
  build "$@"
}

# describe_builds HASH: which two builds are compared.
describe_builds() {
  local state=""
  if [[ -n $(git status --porcelain --untracked-files=normal) ]]; then
    state=", with changes that are not committed"
  elif [[ $(git rev-parse HEAD) == "$1" ]]; then
    state=": the same commit, so that every difference is noise"
  fi
  echo "OLD: $(git log -1 --format='%h %s' "$1")"
  echo "NEW: the working tree, $(git log -1 --format='%h %s')$state"
}
