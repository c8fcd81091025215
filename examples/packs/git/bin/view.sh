# Opens the repository for git. hcp-git reads this file.
#
# The configuration of a repository and of its user can start programs, name files that are out of reach, and change
# what git prints and means. So git never reads it. It gets a common directory made here, in TMPDIR: links to all
# that the real one has, and a configuration which config.awk writes from the real ones.

notes=''
note() { notes="$notes$1
"; }

# sentence is what git said in the file $1, as one line without its marks and hints.
sentence() {
  said=''
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in hint:*) continue ;; esac
    for mark in 'fatal: ' 'error: ' 'warning: ' '	'; do line=${line#"$mark"}; done
    said="$said${said:+ }$line"
  done <"$1"
  plainly "${said:-git stopped without a word.}"
}

# plainly takes the mark of a literal path out of git's message.
plainly() {
  rest=$1
  while :; do
    case $rest in
      *':(top,literal)'*) printf '%s' "${rest%%':(top,literal)'*}" && rest=${rest#*':(top,literal)'} ;;
      *) printf '%s' "$rest" && return ;;
    esac
  done
}

open_repository() {
  export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_OPTIONAL_LOCKS=0 \
    GIT_NO_LAZY_FETCH=1 GIT_TERMINAL_PROMPT=0 GIT_EDITOR=false
  as_stored
  own=${TMPDIR:?must name a private directory}/hcp-git
  errors=$own/errors
  mkdir "$own" "$own/blank" "$own/blank/objects" "$own/blank/refs" "$own/view"
  export GIT_COMMON_DIR="$own/blank"
  find_repository
  list_configurations
  make_view
}

# as_stored shows history as its commits say it: no replacement and no graft of the repository takes part.
as_stored() { export GIT_NO_REPLACE_OBJECTS=1 GIT_GRAFT_FILE=/dev/null; }

# find_repository sets the top of the working tree, the git directory and, for a linked worktree, the common one.
find_repository() {
  locate || { case $(sentence "$errors") in *'dubious ownership'*) trust && locate ;; *) false ;; esac } || {
    case $(sentence "$errors") in
      *'dubious ownership'*) fail "This repository belongs to another user. If you trust it, say so with git config --global --add safe.directory DIRECTORY, and let the pack read that: hcpx allow --read git '~/.gitconfig'" ;;
      *'run in a work tree'*) fail 'There is no working tree here: this is a bare repository, or the inside of a git directory.' ;;
    esac
    fail "$(sentence "$errors")"
  }
  top=${found%%"$newline"*} gitdir=${found#*"$newline"}
  common=$gitdir linked=''
  if [ -f "$gitdir/commondir" ]; then
    IFS= read -r line <"$gitdir/commondir"
    common=$(cd "$gitdir" && cd "$line" && pwd -P) linked=yes
  fi
  [ -d "$top" ] && [ -d "$common/objects" ] || fail 'The name of this directory has a line break, which this command cannot work with.'
  export GIT_DIR="$gitdir" GIT_WORK_TREE="$top"
  alternates
}

newline='
'
locate() { found=$(git rev-parse --show-toplevel --absolute-git-dir 2>"$errors"); }

# trust takes over the directories that the user's configuration calls safe, when it is let in.
trust() {
  count=0
  for file in "$HOME/.config/git/config" "$HOME/.gitconfig"; do
    directories=$(git config --file "$file" --no-includes --get-all safe.directory 2>/dev/null) || continue
    while IFS= read -r directory; do
      export "GIT_CONFIG_KEY_$count=safe.directory" "GIT_CONFIG_VALUE_$count=$directory"
      count=$((count + 1))
    done <<END
$directories
END
  done
  export GIT_CONFIG_COUNT=$count
}

# alternates refuses a repository whose objects lie where they can't be read.
alternates() {
  [ -f "$common/objects/info/alternates" ] || return 0
  while IFS= read -r line; do
    case $line in '' | '#'*) continue ;; /*) ;; *) line=$common/objects/$line ;; esac
    set -- "$line"/*
    [ -e "$1" ] || fail "This repository borrows objects from $line, which is out of reach here."
  done <"$common/objects/info/alternates"
}

# list_configurations writes the entries of each file, in the order in which git reads them.
list_configurations() {
  lists=0
  : >"$own/list.0"
  list personal "${HOME:-}/.config/git/config"
  list personal "${HOME:-}/.gitconfig"
  list repository "$common/config"
  list worktree "$gitdir/config.worktree"
}

# list writes the entries of one file, or, when git can't read what it includes, those of the file alone.
list() {
  [ -e "$2" ] || return 0
  if ! (: <"$2") 2>/dev/null; then
    note "The configuration $2 is out of reach here. Its settings aren't applied."
    return
  fi
  lists=$((lists + 1))
  { printf '@file\n%s\0' "$1" && git config --file "$2" --null --includes --list; } >"$own/list.$lists" 2>"$errors" ||
    { printf '@file\n%s\0@closed\0' "$1" && git config --file "$2" --null --no-includes --list; } >"$own/list.$lists" 2>"$errors" ||
    fail "$(sentence "$errors")"
}

make_view() {
  : >"$own/facts"
  od -An -v -tu1 "$own"/list.* | HCP_FACTS=$own/facts HCP_COMMAND=$command HCP_WRITES=$writes HCP_LINKED=$linked \
    awk -f "$here/config.awk" >"$own/view/config"
  hooks_path=$common/hooks unignored=''
  while IFS= read -r line; do
    case $line in
      'note '*) note "${line#note }" ;;
      'refuse '*) fail "${line#refuse }" ;;
      'unignored '*) unignored=${line#unignored } ;;
      'hooks '*) hooks_path=${line#hooks } ;;
      'worktree '*) same_worktree "${line#worktree }" ;;
    esac
  done <"$own/facts"
  if [ -n "$writes" ]; then mkdir -p "$common/logs"; fi
  set --
  for file in "$common"/*; do
    case $file in */config | */config.worktree) ;; *) set -- "$@" "$file" ;; esac
  done
  ln -s "$@" "$own/view"
  export GIT_COMMON_DIR="$own/view"
}

# same_worktree refuses when the configuration puts the working tree in another place than where we are.
same_worktree() {
  if [ -n "$linked" ]; then return; fi
  place=$(cd "$gitdir" && cd "$1" 2>/dev/null && pwd -P) || place=''
  [ "$place" = "$(cd "$top" && pwd -P)" ] ||
    fail "core.worktree of this repository names $1 as its working tree, and this command works in $top alone."
}
