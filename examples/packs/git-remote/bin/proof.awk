# Holds a walk through history against the commits themselves. "part" names the file that is read: "heads" is what the
# remote has; "range" the commits that a push would add; "parents" has for these, and for those that lead from what the
# remote has to where they begin, the commit and its parents, as its content says.
#
# Prints how many would be added. It fails when one of them does not belong to the branch or is at the remote already,
# when one that is left out is not there, and, with the word "behind", when the remote's own is not in the branch.

part == "heads" { head[$1] = 1 }
part == "range" { range[$1] = 1; listed++ }
part == "parents" { commit = $1; $1 = ""; parents[commit] = $0 }

END {
	for (h in head) todo[++n] = h
	while (n) {
		c = todo[n--]
		if (c in there) continue
		there[c] = 1
		count = split(parents[c], p, " ")
		for (i = 1; i <= count; i++) todo[++n] = p[i]
	}
	for (c in range) if (c in there) exit 1
	todo[++n] = ours
	while (n) {
		c = todo[n--]
		if (c in added) continue
		if (c == theirs) forward = 1
		if (c in there) continue
		if (!(c in range)) exit 1
		added[c] = 1
		added_count++
		count = split(parents[c], p, " ")
		for (i = 1; i <= count; i++) todo[++n] = p[i]
	}
	if (added_count != listed) exit 1
	if (theirs != "" && !forward) {
		print "behind"
		exit 1
	}
	print added_count + 0
}
