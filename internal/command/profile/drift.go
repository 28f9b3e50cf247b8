package profile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// driftFlags are the flags of drift, as given.
type driftFlags struct {
	session.JournalFlags
	profile string
	since   time.Duration
	patch   string
	json    bool
}

// driftCommand returns the command oncehttp profile drift.
func driftCommand(s terminal.Streams) *cobra.Command {
	f := &driftFlags{}
	cmd := &cobra.Command{
		Use:   "drift --journal FILE",
		Short: "Hold the history of a journal against the facts of a profile",
		Long: `Hold the attempts and answers in a journal against the facts of the profiles that
its operations were begun with. It sends nothing. It lists

  replay-gone        a success was answered a second time without the profile's mark
  answered-anew      the same, and later repeats had the mark; or the profile says
                     that a repeat is answered already done, and it was answered anew
  mismatch-accepted  another account's request, with the same --credential and under
                     the same key, was answered with a success
  in-progress        409, 422, 423 or 425, of which the profile says nothing, before a
                     success under the same key
  kept-error         a 500 that the profile calls kept, before a success under the key
  older-known        a note: a key was known after the profile's window
  older-forgotten    a note: a key was not known any more after the profile's window

each with the number of operations, the first and the last time, and one key.
--patch writes a profile file that is only more careful: a shorter window, such
answers held, errors no longer called kept. It is for new operations; those begun
with the old profile need the old one.

A journal keeps the last 16 attempts of an operation, of all answers but the last the
status alone, and of a pruned operation none. So it cannot be seen: the effects
themselves (audit compares them with an export), repeats whose first answer was lost,
codes in the bodies of earlier answers, changes of those 4xx after which nothing is
sent again, and whether a proxy gave an answer. --profile FILE is needed for
operations begun with a file, and leaves out those of other profiles.

Exit status: 0 nothing found, or notes only; 6 something found.`,
		Example: `  oncehttp profile drift --journal payments.db --since 30d
  oncehttp profile drift --journal payments.db --profile stripe --patch stripe-careful.json`,
		Args: settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.HasAccount = cmd.Flags().Changed("account")
			return f.run(cmd.Context(), s)
		},
	}
	f.bind(cmd.Flags())
	return cmd
}

// bind adds the flags of the command profile drift to fs.
func (f *driftFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.Journal, "journal", "", place.JournalUsage+" (or ONCEHTTP_JOURNAL)")
	place.BindSealKey(fs, &f.SealKey)
	fs.StringVar(&f.Account, "account", "", "only operations of this account (default: all)")
	fs.StringVar(&f.profile, "profile", "", "only operations begun with this profile: a name of oncehttp profile list, or a file (default: all of built-in profiles)")
	settings.BindAge(fs, &f.since, "since", "only operations first sent within this time")
	fs.StringVar(&f.patch, "patch", "", "write the more careful profile to this new file")
	fs.BoolVar(&f.json, "json", false, "one line of JSON for each finding")
}

// DriftFinding is a difference between a journal and a profile, with all operations that show it.
type DriftFinding struct {
	Finding    string    `json:"finding"`
	Note       bool      `json:"note,omitempty"` // it contradicts no fact
	Profile    string    `json:"profile"`
	Version    string    `json:"version"`
	Origin     string    `json:"origin"`
	Fact       string    `json:"fact"` // by its name in files
	Status     int       `json:"status"`
	Operations int       `json:"operations"`
	First      time.Time `json:"first"`
	Last       time.Time `json:"last"`
	// Within is the least time from the first send to the answer of the finding, in seconds.
	Within  float64 `json:"within_seconds"`
	Key     string  `json:"key"` // of the first of the operations
	Account string  `json:"account"`
	Means   string  `json:"means"`

	within time.Duration
}

// run compares the records of the journal with the facts of their profiles, and prints the findings. The file of --patch must not be the journal (CheckOut).
// The error has the exit status.
func (f *driftFlags) run(ctx context.Context, s terminal.Streams) error {
	d := &drift{profiles: map[string]*profile.Profile{}, unknown: map[string]int{}}
	if f.profile != "" {
		p, err := session.FindProfile(f.profile)
		if err != nil {
			return err
		}
		d.only = p
	}
	if f.since > 0 {
		d.since = time.Now().Add(-f.since)
	}
	if f.patch != "" {
		if err := f.CheckOut(f.patch); err != nil {
			return err
		}
	}
	return f.WithReader(func(ses *session.Session) error {
		if err := d.read(ctx, ses, f.Query()); err != nil {
			return err
		}
		return f.tell(s, d)
	})
}

// read looks at each operation that q selects, and a second time at those that share a key on the wire with another one: these may show that an API takes two requests
// under one key.
func (d *drift) read(ctx context.Context, ses *session.Session, q persist.Query) error {
	if err := session.EachRecord(ctx, ses, q, d.look); err != nil {
		return err
	}
	if len(d.shared()) == 0 {
		return nil
	}
	return session.EachRecord(ctx, ses, q, d.lookShared)
}

// tell prints the findings and writes the file of --patch. The error has the exit status for findings if there are any but notes.
func (f *driftFlags) tell(s terminal.Streams, d *drift) error {
	findings := d.findings()
	for _, x := range findings {
		if err := f.print(s, x); err != nil {
			return words.Pathless(err)
		}
	}
	terminal.Say(s.Err, "%s", d.summary(findings))
	found := slices.DeleteFunc(findings, func(x DriftFinding) bool { return x.Note })
	if f.patch != "" {
		if err := f.writePatch(s, d, found); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return &terminal.ExitError{Status: terminal.ExitFindings}
	}
	return nil
}

// print writes a finding (an answer of the API against its profile): with --json as one line of JSON, else as text.
func (f *driftFlags) print(s terminal.Streams, x DriftFinding) error {
	if f.json {
		enc := json.NewEncoder(s.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(x)
	}
	when := x.First.UTC().Format(time.RFC3339)
	if !x.First.Equal(x.Last) {
		when += " to " + x.Last.UTC().Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(s.Out, "%-17s  %s, version %s, at %s: %s, %s, such as %s\n%17s  status %d, %v after the first send at the earliest: %s\n",
		x.Finding, x.Profile, x.Version, x.Origin, words.Count(x.Operations, "operation"), when, x.Key, "", x.Status, x.within.Round(time.Millisecond), x.Means)
	return err
}

// summary returns a line with the numbers of operations that were read, and those of each finding. It names those left out.
func (d *drift) summary(findings []DriftFinding) string {
	var parts []string
	for _, x := range findings {
		parts = append(parts, fmt.Sprintf("%d %s", x.Operations, x.Finding))
	}
	if len(parts) == 0 {
		parts = []string{"nothing found"}
	}
	text := fmt.Sprintf("%s, %d of them sent more than once: %s", words.Count(d.total, "operation"), d.repeated, strings.Join(parts, ", "))
	if d.pruned > 0 {
		text += fmt.Sprintf("; %d pruned: their attempts are gone", d.pruned)
	}
	var others []string
	for name, n := range d.unknown {
		others = append(others, fmt.Sprintf("%d of %s", n, words.Clip(name)))
	}
	if slices.Sort(others); len(others) > 0 {
		text += "; left out, since they have other profiles or those of files: " + strings.Join(others, ", ")
	}
	return text
}

// writePatch writes a more careful profile to the new file of --patch. Without findings it writes none; findings about several profiles are an error.
func (f *driftFlags) writePatch(s terminal.Streams, d *drift, found []DriftFinding) error {
	var names []string
	for _, x := range found {
		names = append(names, x.Profile)
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	switch {
	case len(names) == 0:
		terminal.Say(s.Err, "no patch: nothing found")
		return nil
	case len(names) > 1:
		return fmt.Errorf("--patch: there are findings of %s; name one by --profile", strings.Join(names, ", "))
	}
	p := d.profiles[names[0]]
	careful := tightened(p, found, time.Now())
	text, err := careful.File()
	if err != nil {
		return err
	}
	if err := writeNew(f.patch, text); err != nil {
		return fmt.Errorf("--patch: %w", err)
	}
	terminal.Say(s.Err, "patch: %s: profile %s: %s", f.patch, careful.Name, cmp.Or(strings.Join(changes(p, careful), ", "), "nothing to tighten"))
	return nil
}
