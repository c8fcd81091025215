# Writes the configuration that git sees, out of the entries of the configuration files (view.sh), which come as od's
# decimal bytes: per entry its name, a newline, its value and a NUL. What "kept" doesn't name is left out, and so can
# start nothing, read nothing and change no answer.
#
# On stdout comes the configuration; in the file HCP_FACTS one line for each thing that the caller has to know:
# "note TEXT", "refuse TEXT", "worktree PATH", "hooks PATH" and "unignored PATH".

BEGIN {
	facts = ENVIRON["HCP_FACTS"]
	home = ENVIRON["HOME"]
	writes = ENVIRON["HCP_WRITES"]
	commits = (ENVIRON["HCP_COMMAND"] == "commit")
	for (i = 0; i < 256; i++) byte[i] = sprintf("%c", i)
	n = split("core.repositoryformatversion core.filemode core.symlinks core.ignorecase core.precomposeunicode" \
		" core.autocrlf core.eol core.safecrlf core.checkroundtripencoding core.trustctime core.checkstat" \
		" core.sharedrepository core.logallrefupdates core.sparsecheckout core.sparsecheckoutcone" \
		" index.sparse user.name user.email author.name author.email committer.name committer.email" \
		" branch.*.remote branch.*.merge remote.*.fetch", names, " ")
	for (i = 1; i <= n; i++) kept[names[i]] = 1
}

{
	for (i = 1; i <= NF; i++) {
		if ($i == 0) finish()
		else text = text byte[$i]
		if (length(text) > 4095) gather()
	}
}

END {
	for (name in doubt) if (commits && doubt[name] != "") unsure = doubt[name]
	if (unsure != "") tell("refuse The author may be set in " unsure ", which is out of reach here: set user.name and user.email in this repository.")
	if (signs) tell("note commit.gpgSign is set, but this commit is not signed: no key is within reach.")
	pin()
}

function gather() {
	parts = parts text
	text = ""
}

function finish(    at, name, value) {
	gather()
	at = index(parts, "\n")
	name = at ? substr(parts, 1, at - 1) : parts
	value = at ? substr(parts, at + 1) : "true"
	parts = ""
	entry(name, value)
}

function tell(line) {
	gsub(/[\n\r]/, " ", line)
	print line >facts
}

# entry is one setting, in the order in which git reads them. Names with an "@" are of view.sh.
function entry(name, value) {
	if (name == "@file") {
		personal = (value == "personal")
		ignored = (value == "worktree" && !worktrees)
		closed = 0
	} else if (ignored || (name !~ /^@/ && name !~ /[.]/)) return
	else if (name == "@closed") closed = 1
	else if (name ~ /^include(if\..*)?\.path$/) included(name, value)
	else if (name == "core.worktree" || name == "core.bare") place(name, value)
	else if (name == "core.hookspath") tell("hooks " value)
	else if (name == "core.excludesfile") file(name, "core.excludesFile", value)
	else if (name == "core.attributesfile") file(name, "core.attributesFile", value)
	else if (name == "extensions.worktreeconfig") worktrees = truth(value)
	else if (name == "commit.gpgsign") signs = commits && truth(value)
	else if (name ~ /^filter\..*\.(clean|smudge|process)$/) filter(name)
	else if (name ~ /^extensions\./ || (general(name) in kept)) keep(name, value)
}

function truth(value) { return tolower(value) !~ /^(|0+|no|off|false)$/ }

# general is a name with its middle part, which can be anything, as a star.
function general(name,    first, last) {
	first = index(name, ".")
	last = length(name)
	while (substr(name, last, 1) != ".") last--
	if (first == last) return name
	return substr(name, 1, first) "*" substr(name, last)
}

function keep(name, value) {
	if (name in doubt) doubt[name] = ""
	write(name, value)
}

function write(name, value,    first, last, section) {
	first = index(name, ".")
	last = length(name)
	while (substr(name, last, 1) != ".") last--
	section = substr(name, 1, first - 1)
	if (first < last) section = section " \"" escape(substr(name, first + 1, last - first - 1)) "\""
	value = escape(value)
	gsub(/\n/, "\\n", value)
	printf "[%s]\n\t%s = \"%s\"\n", section, substr(name, last + 1), value
}

# escape sets a backslash before each backslash and quote.
function escape(t,    out, i, c) {
	if (t !~ /[\\"]/) return t
	out = ""
	for (i = 1; i <= length(t); i++) {
		c = substr(t, i, 1)
		out = out ((c == "\\" || c == "\"") ? "\\" c : c)
	}
	return out
}

function expand(path) { return (path ~ /^~\//) ? home substr(path, 2) : path }

function readable(path,    line, got) {
	got = (getline line <path)
	close(path)
	return got >= 0
}

# file keeps a setting that names a file when git can read it: one that it can't read ends every command.
function file(name, called, value) {
	if (value == "") return
	if (readable(expand(value))) {
		write(name, value)
		return
	}
	tell("note " called " names " value ", which is out of reach here. What it says about files isn't applied.")
	if (called == "core.excludesFile") tell("unignored " value)
}

# included tells of a file that git would have read here and didn't. A condition on the home directory can't be
# judged, because the real one isn't known here.
function included(name, value) {
	if (!closed && name !~ /^includeif\.gitdir(\/i)?:~/ && (value !~ /^~\// || readable(expand(value)))) return
	tell("note The configuration includes " value ", which is out of reach here. Its settings aren't applied.")
	if (personal) doubt["user.name"] = doubt["user.email"] = value
}

# place is where the working tree lies, which git takes from the repository alone.
function place(name, value) {
	if (personal) return
	if (name == "core.worktree") tell("worktree " value)
	else if (truth(value) && !ENVIRON["HCP_LINKED"]) tell("refuse This repository is bare: it has no working tree here.")
}

# filter switches a content filter off. For a write it stays required, so that git stops at a file which needs it
# instead of storing other content.
function filter(name,    driver) {
	driver = name
	sub(/\.[^.]*$/, "", driver)
	if (driver in filters) return
	filters[driver] = 1
	if (writes) {
		write(driver ".clean", "")
		write(driver ".smudge", "")
		write(driver ".required", "true")
	}
	if (!filtered++) tell("note Content filters of the configuration are off; a file that needs one is taken as it is for reading and refused for writing.")
}

# pin says what must not stay at git's default.
function pin() {
	write("core.bare", "false")
	write("core.quotepath", "false")
	write("core.hookspath", "/dev/null")
	write("core.usereplacerefs", "false")
	write("core.commitgraph", "false")
	write("core.multipackindex", "false")
	write("pack.usebitmaps", "false")
	write("advice.graftfiledeprecated", "false")
	write("diff.autorefreshindex", "false")
	write("gc.auto", "0")
	write("maintenance.auto", "false")
	write("protocol.allow", "never")
	write("user.useconfigonly", "true")
}
