package words

import "strings"

// Nearest returns the name of which a text is most likely a typing error; "" if more than a third of the letters differ from each name. It ignores capitals,
// blanks, hyphens, underscores and slashes.
func Nearest(text string, names []string) string {
	plain := strings.NewReplacer(" ", "", "_", "", "-", "", "/", "")
	fold := func(s string) []rune { return []rune(strings.ToLower(plain.Replace(s))) }
	best, least := "", len(fold(text))/3+1
	for _, name := range names {
		if n := steps(fold(text), fold(name)); n < least {
			best, least = name, n
		}
	}
	return best
}

// steps returns the number of letters to be added, removed or replaced, or pairs of neighbours to be swapped, to make b of a. It fills a table by rows: row
// has the numbers for the letters of a up to the present one, last and before those for one and two letters less.
func steps(a, b []rune) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			row[j+1] = min(last[j+1], row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			} else {
				row[j+1] = min(row[j+1], last[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
