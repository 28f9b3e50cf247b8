package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
)

// showCommand returns the command oncehttp journal show.
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
written as it is; if no key is this one, all are shown that end so after a colon. What
was rejected, so that nothing happened and the journal forgot it, is shown, too: see journal list --rejected.`,
		Example: `  oncehttp journal show idemp:order:u1:o7 --journal payments.db
  oncehttp journal show idemp:order:u1:o7 --journal payments.db --body --json`,
		Args: settings.WantArgs(1, 1, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := clock{now: time.Now(), relative: terminal.IsTerminal(s.Out)}
			return f.WithReader(func(ses *session.Session) error {
				c.leased = !ses.Place.IsFile()
				known, _, err := session.KnownDeclines(cmd.Context(), ses)
				if err != nil {
					return err
				}
				err = show(cmd.Context(), f, ses, args[0], func(rec *persist.Record) error {
					if asJSON {
						return showJSON(s.Out, rec, parts)
					}
					next, err := nextGenerationOf(cmd.Context(), ses, rec)
					if err != nil {
						return err
					}
					if err := showText(s.Out, rec, parts, c, known, next); err != nil {
						return err
					}
					return showTwice(cmd.Context(), ses, known, rec, next, s)
				})
				key := args[0]
				if bare, seen := session.SplitSeen(key); seen != "" {
					key = bare
				}
				if err != nil && !errors.Is(err, errNoSuchKey) {
					return err
				}
				// The journal may have forgotten an operation of the key, and have one that was begun since: both are shown.
				found, rerr := showRejected(cmd.Context(), f, ses, key, c, asJSON, s)
				if err != nil && !found {
					err = f.NotFound(key)
				} else {
					err = nil
				}
				return cmp.Or(rerr, err)
			})
		},
	}
	cmd.Flags().BoolVar(&parts.Bodies, "body", false, "show the query string, the headers and the bodies too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one line of JSON")
	return cmd
}

// show calls print for each operation of the key, in any account. The first word of generated keys may be left out, and @SEEN may follow. If there is none, it tries
// the operations that the user may mean. The error is errNoSuchKey if there are none of these either.
func show(ctx context.Context, f *session.JournalFlags, ses *session.Session, key string, print func(*persist.Record) error) error {
	found, see := 0, ses.Seeing(ctx) // Seeing asks for the time, and so comes before the records are read
	var err error
	for _, spelled := range []string{key, words.KeyPrefix + key} {
		if found > 0 || err != nil {
			break
		}
		q := f.Query()
		q.Key = spelled
		err = session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
			found++
			look(see, rec)
			return print(rec)
		})
	}
	if bare, seen := session.SplitSeen(key); err == nil && found == 0 && seen != "" {
		return show(ctx, f, ses, bare, print)
	}
	if err == nil && found == 0 {
		return showMeant(ctx, f, ses, key, print)
	}
	return err
}

// showMeant calls print for each operation whose key the user may mean by a text: the text is another spelling of the key, or else its end. It returns errNoSuchKey if
// there is none. It is called for a text that is no key itself.
func showMeant(ctx context.Context, f *session.JournalFlags, ses *session.Session, text string, print func(*persist.Record) error) error {
	found, see := 0, ses.Seeing(ctx) // Seeing asks for the time, and so comes before the records are read
	for _, means := range []func(text, key string) bool{words.MeansKey, words.EndsKey} {
		err := session.EachRecord(ctx, ses, f.Query(), func(rec *persist.Record) error {
			if !means(text, rec.Key) {
				return nil
			}
			found++
			look(see, rec)
			return print(rec)
		})
		if err != nil || found > 0 {
			return err
		}
	}
	return errNoSuchKey
}

// nextGenerationOf returns the operation under the next generation of a record's key, the next try of the same request; nil if there is none, or if it cannot be read.
func nextGenerationOf(ctx context.Context, ses *session.Session, rec *persist.Record) (*persist.Record, error) {
	if rec.KeyOfOneCall() || rec.Carrier == persist.CarrierSealed { // a key of one call has no generations; of a sealed (encrypted) record the key may be hidden
		return nil, nil
	}
	link := *rec // names the next generation, as the argument of successorOf
	link.ReplacedBy = intent.NextGeneration(rec.Key)
	next, err := successorOf(ctx, ses.Journal, &link)
	switch {
	case errors.Is(err, persist.ErrNotFound), persist.OfOneRecord(err):
		return nil, nil
	case err != nil:
		return nil, place.JournalError(ses.Place.Name, err)
	}
	return &next, nil
}

// showJSON writes a record as one line of JSON, with KEY@SEEN (the key and a digest of the record) if a decision about it is open. parts says which parts are shown.
func showJSON(w io.Writer, rec *persist.Record, parts view.Parts) error {
	v := view.Of(rec, parts)
	if key := session.SeenKey(rec); key != rec.Key { // else no decision about it is open
		v.Seen = key
	}
	text, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err
}

// showTwice warns on stderr if two generations (tries) of a request both count as done: rec and an earlier one, or rec and next. next may be nil. known are the answers
// that count as refusals.
func showTwice(ctx context.Context, ses *session.Session, known results.Declines, rec, next *persist.Record, s terminal.Streams) error {
	var twice session.DoneTwice
	err := twice.See(ctx, ses, known, rec)
	if err == nil && next != nil {
		err = twice.See(ctx, ses, known, next)
	}
	for _, text := range twice.Lines() {
		terminal.Say(s.Err, "%s", text)
	}
	return err
}

// showState prints the state and the result of a record by line, and the reason if it is held after an answer. known are the answers that count as refusals.
func showState(line func(name, format string, args ...any), rec *persist.Record, known results.Declines) {
	line("state", "%s, result %s", view.StateText(rec), known.ResultOfRecord(rec))
	if cause := view.HeldCause(rec); cause != "" {
		line("cause", "%s", cause)
	}
}

// showText writes a record for people, with its attempts drawn. next is the operation under the next generation of the key (the next try), nil if there is none.
// known are the answers that count as refusals. c spells times.
func showText(w io.Writer, rec *persist.Record, parts view.Parts, c clock, known results.Declines, next *persist.Record) error {
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
	showState(line, rec, known)
	line("request", "%s %s%s, %s, profile %s", rec.Method, rec.Origin, words.PathOf(rec.Target), bodySize(rec), rec.Profile)
	if rec.Region != "" || rec.Credential != "" {
		line("pinned", "region %s, credential %s", cmp.Or(rec.Region, "-"), cmp.Or(rec.Credential, "-"))
	}
	showLinks(line, rec)
	if next != nil {
		fmt.Fprintf(&b, "  next generation: %s (%s)\n", next.Key, known.ResultOfRecord(next))
	}
	if rec.ServerToken { // the server hands out the key of each operation
		line("token", "%s", cmp.Or(rec.Token, "none yet"))
	}
	line("created", "%s", c.when(rec.Created, "-"))
	sends := words.Count(rec.Sends, "send")
	if sentText(rec) == "maybe" {
		sends = "no recorded send"
	}
	line("sent", "%s, first %s; %s attempts, %s", sentText(rec), c.when(rec.FirstSent, "never"), c.attempts(rec), sends)
	switch sending := view.SendingText(rec, c.now); {
	case rec.State.Final():
		line("finished", "%s", c.when(rec.Finished, "-"))
	case sending != "":
		line("sending", "%s", sending)
	case rec.State == persist.StatePending:
		line("next", "%s", cmp.Or(c.willBeHeld(rec), c.next(rec)))
	}
	showAnswer(line, rec)
	if rec.Erased {
		line("erased", "%s", "all but its effect; digests stand for its key and its account")
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

// bodySize returns the size of a request's body, or why the body is not there.
func bodySize(rec *persist.Record) string {
	switch {
	case len(rec.Body) > 0:
	case rec.RequestDropped:
		return "its body was dropped after its end"
	case rec.Erased:
		return "its body was erased"
	case rec.Swept:
		return "its body was pruned"
	}
	return fmt.Sprintf("%d bytes", len(rec.Body))
}

// showLinks prints by line the keys of the operations that a record replaces and is replaced by (a person began them), and the run of journal redrive that began it.
func showLinks(line func(name, format string, args ...any), rec *persist.Record) {
	if rec.Replaces != "" {
		line("replaces", "%s", rec.Replaces)
	}
	if rec.ReplacedBy != "" {
		if intent.IsSkipped(rec) {
			line("replaced", "by %s, a later try: no operation was begun here, and nobody settled one", rec.ReplacedBy)
		} else {
			line("replaced", "by %s", rec.ReplacedBy)
		}
	}
	if rec.RedriveRun != "" {
		line("run", "%s", rec.RedriveRun)
	}
}

// showAnswer prints by line the status and size of the recorded answer, and the parts that were not kept. Without an answer it prints nothing.
func showAnswer(line func(name, format string, args ...any), rec *persist.Record) {
	if rec.Answer == nil || rec.Answer.Status == 0 {
		return
	}
	size := fmt.Sprintf("%d bytes", len(rec.Answer.Body))
	if rec.Answer.BodyDropped {
		size = "its body was not kept"
	}
	if len(rec.Answer.Dropped) > 0 {
		size += ", without " + strings.Join(rec.Answer.Dropped, " ")
	}
	line("answer", "%d, %s", rec.Answer.Status, size)
}

// visible returns the text with each character that a terminal would obey, such as an escape, spelled as in Go. Ends of lines stay. A journal has texts of strangers.
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

// keptText returns the values that the journal keeps of a request (--keep-field) on one line.
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

// showBodies prints by line the parts of a record with possible personal data: query string, headers and bodies. It is called with --body only.
func showBodies(line func(name, format string, args ...any), rec *persist.Record) {
	line("target", "%s", rec.Target)
	for name, values := range rec.Header {
		line("header", "%s: %s", name, strings.Join(values, ", "))
	}
	if !rec.RequestDropped && !rec.Swept {
		line("body", "%s", printable(rec.Body))
	}
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
		encoded, _ := json.Marshal(binary) // JSON has bytes in base64; nothing can fail
		return string(encoded)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// drawHistory draws a line for each attempt: its time, a bar as long as it took beside the longest one, and its result. Without attempts it writes nothing.
func drawHistory(b *strings.Builder, history []persist.Attempt, c clock) {
	const width = 20
	if len(history) == 0 {
		return
	}
	longest := time.Duration(1) // not 0, since it divides
	for _, a := range history {
		longest = max(longest, a.Took)
	}
	b.WriteString("  history\n")
	for _, a := range history {
		bar := strings.Repeat("━", max(1, int(int64(width)*int64(a.Took)/int64(longest))))
		fmt.Fprintf(b, "    %-20s %-*s %7s  %s\n", c.when(a.At, "-"), width, bar, seconds(a.Took.Seconds()), attemptText(a))
	}
}
