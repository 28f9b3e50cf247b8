// Package profile is oncehttp profile: the profiles of APIs, listed and shown.
package profile

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
)

// Command returns the command oncehttp profile.
func Command(s terminal.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Show how APIs do idempotency keys, and write a profile of your own",
		Long: `A profile says how one API does idempotency keys: where the key travels, how long
it is known, and what the answers mean. Each fact has a source, a date and a
confidence. A profile is ready where a primary source or an official page says where
the key travels, where keys count, and that a repeat takes no effect twice; complete
where window, in-progress answer, mismatch and whether errors are kept are known so,
too; partial where less is known, and refused where not even the place of the key is.
The blanks are unknown, which makes oncehttp more careful.
Where the profile of a named API has endpoints or methods, a request elsewhere is sent
once, and held where that leaves a doubt; --key-honoured of batch and send says where
else keys count. With draft-07 and draft-07-quoted, which are of no API, keys count for
every method: a PUT or DELETE is repeated as a POST is.

Wherever a command takes --profile NAME, a file of your own will do: a path with a
slash in it, or that ends in .json.`,
		Example: "  oncehttp profile list\n  oncehttp profile show stripe\n  oncehttp profile new my-api >my-api.json",
		Args:    cobra.ArbitraryArgs,
		RunE:    settings.NeedsCommand,
	}
	cmd.AddCommand(listCommand(s), showCommand(s), newCommand(s), driftCommand(s))
	return cmd
}

// listCommand returns the command oncehttp profile list.
func listCommand(s terminal.Streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the profiles",
		Long: `List the profiles: how far each can be relied on, where the key travels, how long the API says that it knows one
(a question mark: it does not say, and that is what oncehttp goes by), the date of its
oldest source (old: of more than two years ago), and what is not known.`,
		Example: "  oncehttp profile list\n  oncehttp profile list --json",
		Args:    settings.WantArgs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return listProfilesJSON(s.Out)
			}
			return listProfiles(s.Out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "an array of objects instead of a table")
	return cmd
}

// showCommand returns the command oncehttp profile show.
func showCommand(s terminal.Streams) *cobra.Command {
	asJSON, sources := false, false
	cmd := &cobra.Command{
		Use:   "show NAME|FILE",
		Short: "Show what is known of one API, and from where",
		Long: `Show every fact of a profile with its source, date and confidence, the facts that
are unknown, and what oncehttp assumes instead. What a weak source says is marked
with what becomes of it, and a source of more than two years ago as old. With
--sources it also shows the words of each source, where they were noted. An assumption
is replaced by its name: --assume of batch, send and work, and Profile.Assume in Go.`,
		Example: "  oncehttp profile show stripe\n  oncehttp profile show stripe --sources\n  oncehttp profile show ./my-api.json --json",
		Args:    settings.WantArgs(1, 1, "the name or the file of a profile"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := session.ProfileOf(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.Out, viewProfile(p))
			}
			return showProfile(s.Out, p, sources)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one object instead of text, with the words of the sources")
	cmd.Flags().BoolVar(&sources, "sources", false, "also the words of each source")
	return cmd
}

//go:embed new.json
var profileSkeleton string

// newCommand returns the command oncehttp profile new.
func newCommand(s terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "new [NAME]",
		Short: "Print a profile to fill in",
		Long: `Print the skeleton of a profile file: every fact with a comment that says what it
means, and an example. Nothing is known in it; fill in what you know, with its source.
The file can be used at any time. As it is, no key is sent: each request goes out once,
and is held where its answer is lost.`,
		Example: "  oncehttp profile new my-api >my-api.json\n  oncehttp batch orders.csv --profile ./my-api.json --url … --key 'order:{id}'",
		Args:    settings.WantArgs(0, 1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := "my-api"
			if len(args) > 0 {
				name = args[0]
			}
			if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,63}$`).MatchString(name) {
				return fmt.Errorf("the name %q: want lower-case letters, digits, dots and dashes", words.Clip(name))
			}
			if _, taken := profile.ByName(name); taken {
				return fmt.Errorf("the name %q is that of a built-in profile; oncehttp profile show %s", name, name)
			}
			_, err := io.WriteString(s.Out, strings.Replace(profileSkeleton, `"name": "NAME"`, `"name": "`+name+`"`, 1))
			return words.Pathless(err)
		},
	}
}

// View is the JSON form of a profile.
type View struct {
	Name     string               `json:"name"`
	Version  string               `json:"version"`
	Title    string               `json:"title,omitempty"`
	State    profile.State        `json:"state"`
	Complete bool                 `json:"complete"`
	Unknown  []string             `json:"unknown"` // of the facts of a complete one
	Old      []string             `json:"old"`     // facts with old sources
	Assumed  []profile.Assumption `json:"assumed"`
	Facts    []factView           `json:"facts,omitempty"`
}

// factView is the JSON form of a fact; without a value it is unknown.
type factView struct {
	Name   string          `json:"name"`
	Value  json.RawMessage `json:"value"`
	Text   string          `json:"text,omitempty"`
	Source *profile.Source `json:"source,omitempty"`
	Use    string          `json:"use,omitempty"`
}

// viewProfile returns the JSON of a profile for profile show --json: each fact with its source, the unknown ones, and the assumptions. An unknown fact is
// null, and an empty list is [] and not null.
func viewProfile(p *profile.Profile) View {
	v := View{
		Name: p.Name, Version: p.Version, Title: p.Title, State: p.State(), Complete: p.Complete(), Unknown: append([]string{}, p.Unknown()...),
		Old: append([]string{}, p.OldFacts(time.Now())...), Assumed: append([]profile.Assumption{}, p.Assumptions()...),
	}
	for _, s := range p.Statements() {
		fact := factView{Name: s.Name, Value: json.RawMessage("null"), Text: s.Text, Use: s.Use}
		if s.Value != "" {
			fact.Value, fact.Source = json.RawMessage(s.Value), &s.Source
		}
		v.Facts = append(v.Facts, fact)
	}
	return v
}

// listProfiles writes the built-in profiles to out as a table, one a line.
func listProfiles(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tSTATE\tAPI\tKEY\tWINDOW\tSOURCES\tNOT KNOWN") // Flush gives the error
	for _, p := range builtInProfiles() {
		window := strings.TrimSuffix(p.Window.String(), ", a cap that nobody promised")
		if p.Window.Published != profile.Yes {
			window += "?"
		}
		if p.Carrier.Place == profile.Nowhere {
			window = "" // without a key there is no window
		}
		_, _ = fmt.Fprintln(w, strings.Join([]string{p.Name, string(p.State()), p.Title, words.OrDash(p.Carrier.String()), words.OrDash(window), words.OrDash(oldestSource(p)), words.OrDash(strings.Join(p.Unknown(), ", "))}, "\t"))
	}
	return words.Pathless(w.Flush())
}

// oldestSource returns the date of the oldest source of a fact, RFCs and assumptions aside. It adds " old" if the
// profile has old facts. It returns "" if there is no source.
func oldestSource(p *profile.Profile) string {
	oldest := ""
	for _, s := range p.Statements() {
		lasting := s.Source.Confidence == profile.Assumed || strings.Contains(s.Source.Ref, "www.rfc-editor.org/")
		if date := s.Source.Date; date != "" && !lasting && (oldest == "" || date < oldest) {
			oldest = date
		}
	}
	if len(p.OldFacts(time.Now())) > 0 {
		return oldest + " old"
	}
	return oldest
}

// listProfilesJSON writes all built-in profiles as JSON, without their facts.
func listProfilesJSON(out io.Writer) error {
	views := []View{}
	for _, p := range builtInProfiles() {
		v := viewProfile(p)
		v.Facts = nil
		views = append(views, v)
	}
	return printJSON(out, views)
}

// builtInProfiles returns all built-in profiles, by name.
func builtInProfiles() []*profile.Profile {
	var list []*profile.Profile
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		list = append(list, p)
	}
	return list
}

// showProfile writes the facts known of an API: a line a fact. Below a known fact is its source, with the source's
// words if withWords is set. Below the source is the client's use of the fact, unless the fact counts as written.
// The error is that of out.
func showProfile(out io.Writer, p *profile.Profile, withWords bool) error {
	state := string(p.State())
	if p.Carrier.Place == profile.Nowhere {
		state = "it takes no key"
	}
	if lacks := p.NotReady(); len(lacks) > 0 && p.State() == profile.StatePartial {
		state += ", for want of " + strings.Join(lacks, ", ")
	}
	if unknown := p.Unknown(); len(unknown) > 0 {
		state += "; not known: " + strings.Join(unknown, ", ")
	}
	text := fmt.Sprintf("%s, version %s: %s\n", p.Name, p.Version, state)
	if p.Title != "" {
		text = p.Title + "\n" + text
	}
	for _, a := range p.Assumptions() {
		text += fmt.Sprintf("assumed: %s: %s\n", a.Name, a.Text)
	}
	for _, s := range p.Statements() {
		text += statementText(s, withWords)
	}
	_, err := io.WriteString(out, text)
	return words.Pathless(err)
}

// statementText returns a fact of a profile as text, with its source below, the words of the source if withWords is set, and the client's use of the fact
// (s.Use).
func statementText(s profile.Statement, withWords bool) string {
	text := fmt.Sprintf("\n%-17s  %s\n", strings.ReplaceAll(s.Name, "_", " "), cmp.Or(s.Text, "unknown"))
	if s.Value != "" {
		old := ""
		if s.Source.Old(time.Now()) {
			old = " (old)"
		}
		text += fmt.Sprintf("%-17s  %s, %s%s: %s\n", "", s.Source.Confidence, s.Source.Date, old, s.Source.Ref)
	}
	if withWords && s.Source.Said != "" {
		text += fmt.Sprintf("%-17s  says: %s\n", "", s.Source.Said)
	}
	if s.Use != "" {
		text += fmt.Sprintf("%-17s  %s\n", "", s.Use)
	}
	return text
}

// printJSON writes a value as indented JSON.
func printJSON(out io.Writer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return words.Pathless(enc.Encode(value))
}
