# Turns what git prints into JSON, for any bytes. The input is od's decimal bytes, since awk can't hold a NUL.
#
# Text becomes a JSON string byte by byte: valid UTF-8 stays, control characters are escaped, and each byte that
# is no UTF-8 becomes U+FFFD. What the form "log" prints is canonical JSON: its digest can be compared. A path with such a byte is also given as "path_hex", any other text is marked
# "lossy". HCP_FORM names the form; fields end with NUL, and field() is told each of them.

BEGIN {
	form = ENVIRON["HCP_FORM"]
	for (i = 0; i < 256; i++) {
		hexes[i] = sprintf("%02x", i)
		if (i > 127) raw[i] = sprintf("%c", i)
		else if (i < 32) plain[i] = sprintf("\\u%04x", i)
		else plain[i] = sprintf("%c", i)
	}
	plain[8] = "\\b"
	plain[9] = "\\t"
	plain[10] = "\\n"
	plain[12] = "\\f"
	plain[13] = "\\r"
	plain[34] = "\\\""
	plain[92] = "\\\\"
	replacement = raw[239] raw[191] raw[189]
	header = (form == "show") ? 10 : 0
	separator = ""
	open()
}

{
	piece = ""
	for (i = 1; i <= NF; i++) {
		if ($i == 0 && !patch) {
			finish(piece)
			piece = ""
			continue
		}
		if (!patch) hex = hex hexes[$i]
		if ($i < 128 && !need) piece = piece plain[$i]
		else piece = piece utf8($i + 0)
	}
	if (patch) printf "%s", piece
	else keep(piece)
}

END {
	if (patch && need) printf "%s", replacement
	close_answer()
}

# utf8 takes one byte of a sequence and returns what is complete with it.
function utf8(b,    out) {
	out = ""
	if (need) {
		if (b >= low && b <= high) {
			pending = pending raw[b]
			low = 128
			high = 191
			if (--need) return ""
			return pending
		}
		out = broken()
	}
	if (b < 128) return out plain[b]
	pending = raw[b]
	low = 128
	high = 191
	if (b >= 194 && b <= 223) need = 1
	else if (b >= 224 && b <= 239) need = 2
	else if (b >= 240 && b <= 244) need = 3
	else return out broken()
	if (b == 224) low = 160
	if (b == 237) high = 159
	if (b == 240) low = 144
	if (b == 244) high = 143
	return out
}

function broken() {
	need = 0
	lossy = 1
	return replacement
}

# keep gathers a field in large parts, so that a long one does not cost its square.
function keep(piece) {
	text = text piece
	if (length(text) < 8192) return
	parts = parts text
	text = ""
}

function finish(piece,    whole) {
	if (need) piece = piece broken()
	whole = parts text piece
	field(whole)
	parts = ""
	text = ""
	hex = ""
	lossy = 0
}

function quote(t) { return "\"" t "\"" }

function orNull(t) { return (t == "") ? "null" : "\"" t "\"" }

# path is a field that names a file; skip is the length of what stands before the name.
function path(key, t, skip) {
	return "\"" key "\":\"" t "\"" (lossy ? ",\"" key "_hex\":\"" substr(hex, 2 * skip + 1) "\"" : "")
}

function item(t) {
	printf "%s%s", separator, t
	separator = ","
}

function field(t) {
	if (form == "status") status(t)
	else if (form == "log" || form == "commit" || header) record(t)
	else if (form == "branches") branch(t)
	else if (form == "head") values[++nvalues] = t
	else change(t)
}

function open() {
	if (form == "log") printf "{\"commits\":["
	else if (form == "branches") printf "{\"branches\":["
	else if (form == "staged") printf "{\"staged\":["
	else if (form == "diff") printf "{\"files\":["
	else if (form == "commit" || form == "show") printf "{\"commit\":"
}

function close_answer() {
	if (form == "log" || form == "branches") printf "]"
	else if (form == "status") close_status()
	else if (form == "head") printf "{\"branch\":%s,\"commit\":%s", orNull(values[1]), quote(values[2])
	else if (form != "commit") {
		if (!patch) files()
		if (patch) printf "\""
		else if (form == "staged") printf "]"
		else printf "],\"patch\":\"\""
		if (patch && lossy) printf ",\"lossy\":true"
	}
	hooks()
	printf ",\"notes\":["
	count = split(ENVIRON["HCP_NOTES"], lines, "\n")
	for (i = 1; i < count; i++) printf "%s%s", (i > 1) ? "," : "", quote(lines[i])
	print "]}"
}

# hooks tells which hooks stood ready and were not run; a read command has none to tell.
function hooks(    names, n, i) {
	if (ENVIRON["HCP_HOOKS"] == "off") return
	n = split(ENVIRON["HCP_HOOKS"], names, " ")
	printf ",\"hooks\":{\"run\":[],\"skipped\":["
	for (i = 1; i <= n; i++) printf "%s%s", (i > 1) ? "," : "", quote(names[i])
	printf "]}"
}

# record gathers the ten fields of a commit (commit_format in hcp-git).
function record(t,    n, i, parents, list) {
	values[++nvalues] = t
	spoiled = spoiled || lossy
	if (header) header--
	if (nvalues < 10) return
	n = split(values[2], parents, " ")
	list = ""
	for (i = 1; i <= n; i++) list = list ((i > 1) ? "," : "") quote(parents[i])
	sub(/(\\n)+$/, "", values[10])
	item("{\"author\":" person(3) ",\"body\":" quote(values[10]) ",\"committer\":" person(6) ",\"id\":" quote(values[1]) \
		(spoiled ? ",\"lossy\":true" : "") ",\"parents\":[" list "],\"subject\":" quote(values[9]) "}")
	nvalues = 0
	spoiled = 0
	if (form == "show") {
		printf ",\"files\":["
		separator = ""
	}
}

function person(i) {
	return "{\"email\":" quote(values[i + 1]) ",\"name\":" quote(values[i]) ",\"time\":" quote(values[i + 2]) "}"
}

function branch(t) {
	values[++nvalues] = t
	spoiled = spoiled || lossy
	if (nvalues < 6) return
	nvalues = 0
	sub(/^\\n/, "", values[1])
	item("{\"name\":" quote(values[1]) ",\"commit\":" quote(values[2]) ",\"current\":" \
		((values[3] == "*") ? "true" : "false") ",\"upstream\":" orNull(values[4]) ",\"time\":" quote(values[5]) \
		",\"subject\":" quote(values[6]) (spoiled ? ",\"lossy\":true" : "") "}")
	spoiled = 0
}

# words cuts n words off the start of t; rest is what follows, cut is the length of what was cut.
function words(t, n,    i, at) {
	cut = 0
	for (i = 1; i <= n; i++) {
		at = index(t, " ")
		word[i] = substr(t, 1, at - 1)
		t = substr(t, at + 1)
		cut += at
	}
	rest = t
}

function state(letter) {
	if (letter == "M") return "\"modified\""
	if (letter == "A") return "\"added\""
	if (letter == "D") return "\"deleted\""
	if (letter == "R") return "\"renamed\""
	if (letter == "C") return "\"copied\""
	if (letter == "T") return "\"type_changed\""
	if (letter == "U") return "\"unmerged\""
	return "\"unmodified\""
}

# status reads git's porcelain v2: headers, changed (1), renamed (2, with a second field), unmerged (u), untracked (?).
function status(t,    kind) {
	if (half != "") {
		entries[++nentries] = half "," path("from", t, 0) "}"
		half = ""
		return
	}
	kind = substr(t, 1, 1)
	if (kind == "#") {
		words(t, 2)
		head[word[2]] = rest
		return
	}
	if (kind == "?") {
		words(t, 1)
		entries[++nentries] = "{" path("path", rest, cut) ",\"index\":\"untracked\",\"worktree\":\"untracked\"}"
		return
	}
	words(t, (kind == "1") ? 8 : (kind == "2") ? 9 : 10)
	entry = "{" path("path", rest, cut) ",\"index\":" state(substr(word[2], 1, 1)) ",\"worktree\":" state(substr(word[2], 2, 1))
	if (kind == "2") half = entry
	else if (kind == "u") entries[++nentries] = entry ",\"conflict\":\"" word[2] "\"}"
	else entries[++nentries] = entry "}"
}

function close_status(    ahead, name, i) {
	name = head["branch.head"]
	if (name == "(detached)") name = ""
	if (head["branch.oid"] == "(initial)") head["branch.oid"] = ""
	printf "{\"branch\":%s,\"commit\":%s,\"upstream\":%s,", orNull(name), orNull(head["branch.oid"]), orNull(head["branch.upstream"])
	if (split(head["branch.ab"], ahead, " ") == 2) printf "\"ahead\":%d,\"behind\":%d,", substr(ahead[1], 2), substr(ahead[2], 2)
	else printf "\"ahead\":null,\"behind\":null,"
	printf "\"clean\":%s,\"entries\":[", nentries ? "false" : "true"
	for (i = 1; i <= nentries; i++) printf "%s%s", (i > 1) ? "," : "", entries[i]
	printf "]"
}

# change reads --raw and --numstat records; an empty field stands before the patch.
function change(t,    at) {
	if (expect == "raw" || expect == "from") {
		if (expect == "from") {
			from = path("from", t, 0)
			expect = "raw"
			return
		}
		expect = ""
		key[++nfiles] = t
		file[nfiles] = path("path", t, 0) ((from == "") ? "" : "," from) ",\"status\":" state(letter)
		from = ""
	} else if (expect == "old") {
		expect = "new"
	} else if (expect == "new") {
		expect = ""
		counts[t] = count
	} else if (t == "") {
		files()
		printf "],\"patch\":\""
		patch = 1
	} else if (substr(t, 1, 1) == ":") {
		parents = match(t, /[^:]/) - 1 # more than one colon: a conflict
		words(t " ", 2 * parents + 3)
		letter = (parents > 1) ? "U" : substr(word[5], 1, 1)
		expect = (letter == "R" || letter == "C") ? "from" : "raw"
	} else {
		at = index(t, "\\t")
		count = substr(t, 1, at - 1)
		t = substr(t, at + 2)
		at = index(t, "\\t")
		count = (count == "-") ? "\"binary\":true" : "\"additions\":" count ",\"deletions\":" substr(t, 1, at - 1)
		t = substr(t, at + 2)
		if (t == "") expect = "old"
		else counts[t] = count
	}
}

function files(    i) {
	for (i = 1; i <= nfiles; i++) {
		if (key[i] in told) continue # a conflict comes twice, first as such
		told[key[i]] = 1
		item("{" file[i] ((key[i] in counts) ? "," counts[key[i]] : "") "}")
	}
}
