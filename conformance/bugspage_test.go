package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// writeFlag writes the page that says which broken server is seen by which cases.
var writeFlag = flag.Bool("write", false, "write docs/conformance-bugs.md")

const bugsPage = "../docs/conformance-bugs.md"

// The page says of every broken server by which cases it is seen, with a witness
// and without one, and is what the tables of these tests say.
func TestBugsPage(t *testing.T) {
	t.Parallel()
	page := bugsTable()
	if *writeFlag {
		if err := os.WriteFile(bugsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	standing, err := os.ReadFile(bugsPage)
	if err != nil || string(standing) != page {
		t.Errorf("%s is not what the tables say (%v); go test ./conformance -run TestBugsPage -write writes it", bugsPage, err)
	}
	if n := strings.Count(page, "\n| `"); n < len(allBroken()) {
		t.Errorf("got %d broken servers on the page, want all %d", n, len(allBroken()))
	}
}

func bugsTable() string {
	var b strings.Builder
	b.WriteString("# Broken servers, and what sees them\n\n" +
		"Each row is a server with one bug that the suite's own tests judge by all cases, with several seeds (by all but those that take\n" +
		"longer than its keys live, where it forgets keys early): exactly these cases fail (*warn* where they warn, *open* where they are not decided), with a\n" +
		"witness that counts effects and without one, where effects are inferred from the ids in answers. A dash means that nothing is seen, and the reason stands behind it. The servers of the first table are `oncehttp mock --bug NAME`; those of the second\n" +
		"are small servers of the tests. The page is generated: `go test ./conformance -run TestBugsPage -args -write`.\n\n" +
		"| bug | what the server does | with a witness | without |\n|---|---|---|---|\n")
	kinds := [][]broken{mockBugs(), samples()}
	for i, kind := range kinds {
		if i > 0 {
			b.WriteString("\n| sample | what the server does | with a witness | without |\n|---|---|---|---|\n")
		}
		for _, one := range kind {
			row(&b, &one)
		}
	}
	return b.String()
}

// row is the line of one server.
func row(b *strings.Builder, one *broken) {
	why := ""
	if one.why != "" {
		why = " (" + one.why + ")"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s%s |\n", one.name, one.about, spelt(one.want), spelt(one.blind), why)
}

// spelt are verdicts as the page has them.
func spelt(verdicts string) string {
	var parts []string
	for id := range strings.FieldsSeq(verdicts) {
		parts = append(parts, strings.TrimLeft(id, "?~")+map[byte]string{'?': " *warn*", '~': " *open*"}[id[0]])
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}
