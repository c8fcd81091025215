# Writes one note as a line of JSON. The text comes from the environment, byte for byte.
BEGIN {
	for (i = 1; i < 32; i++) escape[sprintf("%c", i)] = sprintf("\\u%04x", i)
	escape["\""] = "\\\""
	escape["\\"] = "\\\\"
	text = ENVIRON["HCP_TEXT"]
	printf "{\"id\":%d,\"text\":\"", id
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		printf "%s", (c in escape) ? escape[c] : c
	}
	print "\"}"
}
