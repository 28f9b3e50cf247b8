package main

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

	"github.com/oncehttp/oncehttp/persist"
)

func journalShowCommand(f *journalFlags, s streams) *cobra.Command {
	var parts recordParts
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show one operation, and what was tried",
		Long: `Show what the journal knows of one operation, and draw its latest attempts. No
credentials are in a journal. The query string, the headers and the bodies are
shown with --body only. Where several accounts have an operation of this key, all
are shown.`,
		Example: `  oncehttp journal show idemp:order:u1:o7 --journal payments.db
  oncehttp journal show idemp:order:u1:o7 --journal payments.db --body --json`,
		Args: wantArgs(1, 1, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := clock{now: time.Now(), relative: isTerminal(s.out)}
			return f.withReader(func(ses *session) error {
				return f.show(cmd.Context(), ses, args[0], func(rec *persist.Record) error {
					if asJSON {
						return showJSON(s.out, rec, parts)
					}
					return showText(s.out, rec, parts, c)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&parts.bodies, "body", false, "show the query string, the headers and the bodies too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one line of JSON")
	return cmd
}

// show calls print for each operation of the key.
func (f *journalFlags) show(ctx context.Context, ses *session, key string, print func(*persist.Record) error) error {
	q := f.query()
	q.Key = key
	found, see := 0, ses.seeing(ctx)
	err := eachRecord(ctx, ses, q, func(rec *persist.Record) error {
		found++
		see.set(rec)
		return print(rec)
	})
	if bare, seen := splitSeen(key); err == nil && found == 0 && seen != "" {
		return f.show(ctx, ses, bare, print)
	}
	if err == nil && found == 0 {
		return f.notFound(key)
	}
	return err
}

func showJSON(w io.Writer, rec *persist.Record, parts recordParts) error {
	v := viewOf(rec, parts)
	if key := seenKey(rec); key != rec.Key {
		v.Seen = key
	}
	text, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err
}

// showText is for people.
func showText(w io.Writer, rec *persist.Record, parts recordParts, c clock) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(&b, rec.Key)
	if key := seenKey(rec); key != rec.Key {
		line("seen", "%s", key)
	}
	if rec.ScopedAccount() != "" {
		line("account", "%s", rec.ScopedAccount())
	}
	line("state", "%s, result %s", stateText(rec), declines(nil).resultOfRecord(rec))
	line("request", "%s %s%s, %d bytes, profile %s", rec.Method, rec.Origin, pathOf(rec.Target), len(rec.Body), rec.Profile)
	if rec.Region != "" || rec.Credential != "" {
		line("pinned", "region %s, credential %s", cmp.Or(rec.Region, "-"), cmp.Or(rec.Credential, "-"))
	}
	if rec.Replaces != "" {
		line("replaces", "%s", rec.Replaces)
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
	if sending := sendingText(rec, c.now); sending != "" {
		line("sending", "%s", sending)
	}
	if rec.Answer != nil && rec.Answer.Status != 0 {
		size := fmt.Sprintf("%d bytes", len(rec.Answer.Body))
		if rec.Answer.BodyDropped {
			size = "its body was not kept"
		}
		line("answer", "%d, %s", rec.Answer.Status, size)
	}
	if rec.Note != "" {
		line("note", "%s", strings.Join(strings.Fields(rec.Note), " "))
	}
	if parts.bodies {
		showBodies(line, rec)
	}
	drawHistory(&b, rec.History, c)
	_, err := io.WriteString(w, visible(b.String()))
	return err
}

// visible spells what a terminal would obey, but for ends of lines, as Go does.
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

// keptText are the kept fields on one line.
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

// showBodies shows what may hold personal data.
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

// printable is a body on one line: JSON and text as they are, the rest in base64.
func printable(body []byte) string {
	text, binary := bodyView(body)
	if binary != nil {
		encoded, _ := json.Marshal(binary) // bytes: nothing can fail
		return string(encoded)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// drawHistory draws a line for each attempt: when, how long, and what came of it.
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
