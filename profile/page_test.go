package profile_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// writeFlag writes the page that shows what is known of each API.
var writeFlag = flag.Bool("write", false, "write docs/providers.md")

const providersPage = "../docs/providers.md"

// TestProvidersPage: the page says what the data says.
func TestProvidersPage(t *testing.T) {
	t.Parallel()
	page := pageText(t)
	if *writeFlag {
		if err := os.WriteFile(providersPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	standing, err := os.ReadFile(providersPage)
	if err != nil || string(standing) != page {
		t.Errorf("%s is not what the data says (%v); go test ./profile -run TestProvidersPage -write writes it", providersPage, err)
	}
	if rows := strings.Count(page, "\n| ["); rows != len(profile.Names()) {
		t.Errorf("%d rows for %d profiles", rows, len(profile.Names()))
	}
}

const pageHead = `# What is known of each API

Each row is a profile: ` + "`--profile NAME`, `profile.ByName`" + `. It is *ready* where a primary source or an official page says where the key travels,
where keys count, and that a repeat takes no effect twice; *complete* where window, in-progress answer, mismatch and whether errors are kept are known so, too;
*partial* where a source lacks for one of the first, and *refused* where not even the place of the key is known, so that no client takes it. Blanks are unknown, which makes the
client more careful. A window with a question mark is promised by nobody, and a row is marked *old* where a source of it is of more than two years before the newest. The letter
behind a fact is its confidence: A the specification or the vendor's own source, B an official page seen in part, C a third party's word
or a page that was replaced since, D a choice of this project that nobody has promised. What only C says is held: nothing is concluded
from such an answer. The package comment of ` + "`profile`" + ` has the whole rule. Facts of more than one product are the strictest of them.

A decline that an API answers with a 2xx is told as done where its profile has no verdicts for the endpoint: give ` + "`--done` and `--declined`" + `, or verdicts in a profile of your own.

The page is generated from ` + "`profile/data`" + `: ` + "`go test ./profile -run TestProvidersPage -write`" + `. Nothing here was tried against an
account of the vendor's. ` + "`oncehttp profile show NAME`" + ` shows one profile with every source (` + "`--sources`" + `: and its words), ` + "`oncehttp profile new`" + ` starts one of your own: [my API is not in the list](my-api.md).

| profile | API | key travels in | window | in progress | mismatch | mark of a replay | 5xx kept | |
|---|---|---|---|---|---|---|---|---|
`

// letter grades a source as the page does.
func letter(c profile.Confidence) string {
	return map[profile.Confidence]string{profile.Primary: "A", profile.Excerpt: "B", profile.Secondary: "C", profile.Assumed: "D"}[c]
}

func pageText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(pageHead)
	var all []*profile.Profile
	newest := ""
	for _, name := range profile.Names() {
		p, ok := profile.ByName(name)
		if !ok {
			t.Fatalf("no profile %q", name)
		}
		all = append(all, p)
		for _, s := range p.Sources {
			newest = max(newest, s.Date[:len("2006-01")])
		}
	}
	at, err := time.Parse("2006-01", newest)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		b.WriteString(tableRow(p, at))
	}
	for _, p := range all {
		b.WriteString(section(p))
	}
	return b.String()
}

// tableRow is the row of one profile; sources are old as of that time.
func tableRow(p *profile.Profile, at time.Time) string {
	cells := map[string]string{}
	for _, s := range p.Statements() {
		if s.Text != "" {
			cells[s.Name] = escaped(strings.TrimSuffix(s.Text, ", a cap that nobody promised")) + " " + letter(s.Source.Confidence)
		}
	}
	kept := ""
	if p.Stored.ServerError != profile.Unknown {
		kept = p.Stored.ServerError.String() + " " + letter(p.Sources["Stored"].Confidence)
	}
	mismatch := cells["mismatch"]
	if mismatch == "" && cells["already_done"] != "" {
		mismatch = "already done: " + cells["already_done"]
	}
	var marks []string
	if p.Carrier.Place != profile.Nowhere {
		marks = append(marks, string(p.State()))
	}
	if len(p.OldFacts(at)) > 0 {
		marks = append(marks, "old")
	}
	window := cells["window"]
	if p.Window.Published != profile.Yes {
		window = strings.Replace(window, " ", "? ", 1)
	}
	replay := cells["replay"]
	if len(p.Replay) > 2 {
		replay = "any usual one " + letter(p.Sources["Replay"].Confidence)
	}
	name := fmt.Sprintf("[%s](#%s)", p.Name, strings.ReplaceAll(p.Name, ".", ""))
	return "| " + strings.Join([]string{name, escaped(p.Title), cells["carrier"], window, cells["in_progress"], mismatch, replay, kept, strings.Join(marks, ", ")}, " | ") + " |\n"
}

// section is what the row of a profile has no room for.
func section(p *profile.Profile) string {
	text := "\n## " + p.Name + "\n\n" + escaped(p.Title) + ", version " + p.Version + "."
	if unknown := p.Unknown(); len(unknown) > 0 {
		text += " Not known: " + strings.ReplaceAll(strings.Join(unknown, ", "), "_", " ") + "."
	}
	text += "\n\n"
	sources := map[profile.Source][]string{}
	var order []profile.Source
	for _, s := range p.Statements() {
		name := strings.ReplaceAll(s.Name, "_", " ")
		switch {
		case s.Text == "":
			continue
		case s.Use != "":
			text += "- " + name + ", as only a weak source says: " + escaped(s.Text) + " (" + s.Use + ")\n"
		case s.Name == "key", s.Name == "body", s.Name == "methods", s.Name == "endpoints", s.Name == "verdicts", s.Name == "unclear", s.Name == "poisoned", s.Name == "business_conflict", s.Name == "should_retry", s.Name == "min_delay", s.Name == "reconcile":
			text += "- " + name + ": " + escaped(s.Text) + "\n"
		case s.Name == "notes":
			for _, note := range p.Notes {
				text += "- " + escaped(note) + "\n"
			}
		}
		source := s.Source
		source.Said = "" // oncehttp profile show --sources prints it
		if len(sources[source]) == 0 {
			order = append(order, source)
		}
		sources[source] = append(sources[source], name)
	}
	text += "\nSources:\n\n"
	for _, s := range order {
		text += fmt.Sprintf("- %s, %s: %s (%s)\n", letter(s.Confidence), s.Date, escaped(s.Ref), strings.Join(sources[s], ", "))
	}
	return text
}

// escaped keeps text from being read as Markdown.
func escaped(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "{", `\{`).Replace(text)
}
