package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

func showCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	var parts view.Parts
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show one operation, and what was tried",
		Long: `Show what the journal knows of one operation, and draw its latest attempts. No
credentials are in a journal. The query string, the headers and the bodies are
shown with --body only. Where several accounts have an operation of this key, all
are shown. Of KEY "idemp:" may be left out, and what is percent-encoded may be
written as it is.`,
		Example: `  oncehttp journal show idemp:order:u1:o7 --journal payments.db
  oncehttp journal show idemp:order:u1:o7 --journal payments.db --body --json`,
		Args: settings.WantArgs(1, 1, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := clock{now: time.Now(), relative: terminal.IsTerminal(s.Out)}
			return f.WithReader(func(ses *session.Session) error {
				return show(cmd.Context(), f, ses, args[0], func(rec *persist.Record) error {
					if asJSON {
						return showJSON(s.Out, rec, parts)
					}
					return showText(s.Out, rec, parts, c)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&parts.Bodies, "body", false, "show the query string, the headers and the bodies too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one line of JSON")
	return cmd
}

// show calls print for each operation of the key.
func show(ctx context.Context, f *session.JournalFlags, ses *session.Session, key string, print func(*persist.Record) error) error {
	q := f.Query()
	q.Key = key
	found, see := 0, ses.Seeing(ctx)
	err := session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		found++
		see.Set(rec)
		return print(rec)
	})
	if bare, seen := session.SplitSeen(key); err == nil && found == 0 && seen != "" {
		return show(ctx, f, ses, bare, print)
	}
	if err == nil && found == 0 {
		return showMeant(ctx, f, ses, key, print)
	}
	return err
}

// showMeant calls print for each operation with a key possibly meant by a text. The text is no key itself.
func showMeant(ctx context.Context, f *session.JournalFlags, ses *session.Session, text string, print func(*persist.Record) error) error {
	found, see := 0, ses.Seeing(ctx)
	err := session.EachRecord(ctx, ses, f.Query(), func(rec *persist.Record) error {
		if !words.MeansKey(text, rec.Key) {
			return nil
		}
		found++
		see.Set(rec)
		return print(rec)
	})
	if err == nil && found == 0 {
		return f.NotFound(text)
	}
	return err
}

func showJSON(w io.Writer, rec *persist.Record, parts view.Parts) error {
	v := view.Of(rec, parts)
	if key := session.SeenKey(rec); key != rec.Key {
		v.Seen = key
	}
	text, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err
}

// showText is for people.
func showText(w io.Writer, rec *persist.Record, parts view.Parts, c clock) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(&b, rec.Key)
	if key := session.SeenKey(rec); key != rec.Key {
		line("seen", "%s", key)
	}
	if rec.ScopedAccount() != "" {
		line("account", "%s", rec.ScopedAccount())
	}
	line("state", "%s, result %s", view.StateText(rec), results.Declines(nil).ResultOfRecord(rec))
	line("request", "%s %s%s, %d bytes, profile %s", rec.Method, rec.Origin, words.PathOf(rec.Target), len(rec.Body), rec.Profile)
	if rec.Region != "" || rec.Credential != "" {
		line("pinned", "region %s, credential %s", cmp.Or(rec.Region, "-"), cmp.Or(rec.Credential, "-"))
	}
	if rec.Replaces != "" {
		line("replaces", "%s", rec.Replaces)
	}
	if rec.ReplacedBy != "" {
		line("replaced", "by %s", rec.ReplacedBy)
	}
	if rec.RedriveRun != "" {
		line("run", "%s", rec.RedriveRun)
	}
	if rec.ServerToken {
		line("token", "%s", cmp.Or(rec.Token, "none yet"))
	}
	line("created", "%s", c.when(rec.Created, "-"))
	line("sent", "%s, first %s; %s attempts, %d sends", sentText(rec), c.when(rec.FirstSent, "never"), attemptsText(rec), rec.Sends)
	switch {
	case rec.State.Final():
		line("finished", "%s", c.when(rec.Finished, "-"))
	case rec.State == persist.StatePending:
		line("next", "%s", c.when(rec.NextAttempt, "now"))
	}
	if sending := view.SendingText(rec, c.now); sending != "" {
		line("sending", "%s", sending)
	}
	if rec.Answer != nil && rec.Answer.Status != 0 {
		size := fmt.Sprintf("%d bytes", len(rec.Answer.Body))
		if rec.Answer.BodyDropped {
			size = "its body was not kept"
		}
		line("answer", "%d, %s", rec.Answer.Status, size)
	}
	if e := rec.Evidence; e != nil {
		line("evidence", "%s %s, by %s, signed as %s, stored %s", strings.Join(strings.Fields(e.Type), " "), strings.Join(strings.Fields(e.Event), " "), e.By, e.Scheme, c.when(e.At, "-"))
	}
	if rec.Note != "" {
		line("note", "%s", strings.Join(strings.Fields(rec.Note), " "))
	}
	for _, a := range rec.Acts {
		line("act", "%s %s: %s", c.when(a.At, "-"), a.Did, words.OrDash(strings.Join(strings.Fields(a.Note), " ")))
	}
	if parts.Bodies {
		showBodies(line, rec)
	}
	drawHistory(&b, rec.History, c)
	_, err := io.WriteString(w, visible(b.String()))
	return err
}

// visible spells the characters obeyed by a terminal, except ends of lines, as Go does.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || strconv.IsGraphic(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// keptText returns the kept fields on one line.
func keptText(rec *persist.Record) string {
	parts := make([]string, len(rec.KeptFields))
	for i, f := range rec.KeptFields {
		parts[i] = f.Pointer + "=" + f.Value
		if f.Omitted {
			parts[i] = f.Pointer + " (not kept: too long, or no text)"
		}
	}
	return strings.Join(strings.Fields(strings.Join(parts, ", ")), " ")
}

// showBodies shows the parts with possible personal data.
func showBodies(line func(name, format string, args ...any), rec *persist.Record) {
	line("target", "%s", rec.Target)
	for name, values := range rec.Header {
		line("header", "%s: %s", name, strings.Join(values, ", "))
	}
	line("body", "%s", printable(rec.Body))
	if len(rec.KeptFields) > 0 {
		line("kept", "%s", keptText(rec))
	}
	if rec.Answer != nil {
		line("answered", "%s", printable(rec.Answer.Body))
	}
}

// printable returns a body on one line: JSON and text as they are, the rest in base64.
func printable(body []byte) string {
	text, binary := view.Body(body)
	if binary != nil {
		encoded, _ := json.Marshal(binary) // bytes: nothing can fail
		return string(encoded)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// drawHistory draws a line for each attempt: its time, duration and result.
func drawHistory(b *strings.Builder, history []persist.Attempt, c clock) {
	const width = 20
	if len(history) == 0 {
		return
	}
	longest := time.Duration(1)
	for _, a := range history {
		longest = max(longest, a.Took)
	}
	b.WriteString("  history\n")
	for _, a := range history {
		bar := strings.Repeat("━", max(1, int(int64(width)*int64(a.Took)/int64(longest))))
		fmt.Fprintf(b, "    %-20s %-*s %7s  %s\n", c.when(a.At, "-"), width, bar, seconds(a.Took.Seconds()), attemptText(a))
	}
}
