package protocol

// longestWord is the longest word that is compared; names are far shorter.
const longestWord = 128

// Distance counts the bytes that must be put in, left out or changed to make b of a.
func Distance(a, b string) int {
	if len(a) > longestWord || len(b) > longestWord {
		return longestWord
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Nearest is the name that somebody who typed word may have meant: the first one of the fewest edits, at most
// two; "" when there is none.
func Nearest(word string, names []string) string {
	best, found := 3, ""
	for _, n := range names {
		if d := Distance(word, n); d < best {
			best, found = d, n
		}
	}
	return found
}
