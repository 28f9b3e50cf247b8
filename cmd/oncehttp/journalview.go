package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/persist"
)

// recordParts says how much of a record is shown.
type recordParts struct {
	bodies  bool // query string, headers and bodies
	oneLine bool
}

// recordView is a record as journal list, show and export spell it in JSON.
type recordView struct {
	Key            string             `json:"key"`
	Account        string             `json:"account"`
	State          string             `json:"state"`
	Why            persist.HoldReason `json:"why,omitempty"`
	Effect         persist.Effect     `json:"effect,omitempty"`
	Generated      bool               `json:"generated,omitempty"`
	PlainHTTP      bool               `json:"plain_http,omitempty"`
	Method         string             `json:"method"`
	Origin         string             `json:"origin"`
	Target         string             `json:"target"`
	Profile        string             `json:"profile"`
	ProfileVersion string             `json:"profile_version"`
	WindowSeconds  int64              `json:"window_seconds"`
	Fingerprint    string             `json:"fingerprint"`
	Created        time.Time          `json:"created"`
	MaybeSent      bool               `json:"maybe_sent"`
	FirstSent      time.Time          `json:"first_sent,omitzero"`
	NextAttempt    time.Time          `json:"next_attempt,omitzero"`
	SendBefore     time.Time          `json:"send_before,omitzero"`
	Finished       time.Time          `json:"finished,omitzero"`
	Attempts       int                `json:"attempts"`
	Sends          int                `json:"sends"`
	Swept          bool               `json:"swept,omitempty"`
	Omitted        []string           `json:"omitted,omitempty"`
	Header         http.Header        `json:"header,omitempty"`
	BodyBytes      int                `json:"body_bytes"`
	Body           json.RawMessage    `json:"body,omitempty"`
	BodyBase64     []byte             `json:"body_base64,omitempty"`
	Answer         *answerView        `json:"answer,omitempty"`
}

// answerView is the answer of a record.
type answerView struct {
	Status      int             `json:"status"`
	At          time.Time       `json:"at,omitzero"`
	Replayed    bool            `json:"replayed,omitempty"`
	AlreadyDone bool            `json:"already_done,omitempty"`
	Header      http.Header     `json:"header,omitempty"`
	BodyBytes   int             `json:"body_bytes"`
	BodyDropped bool            `json:"body_dropped,omitempty"`
	Body        json.RawMessage `json:"body,omitempty"`
	BodyBase64  []byte          `json:"body_base64,omitempty"`
}

func viewOf(rec *persist.Record, parts recordParts) recordView {
	v := recordView{
		Key: rec.Key, Account: rec.Account, State: rec.State.String(), Why: rec.HoldReason, Effect: rec.Effect,
		Generated: rec.Generated, PlainHTTP: rec.PlainHTTP,
		Method: rec.Method, Origin: rec.Origin, Target: pathOf(rec.Target),
		Profile: rec.Profile, ProfileVersion: rec.ProfileVersion, WindowSeconds: int64(rec.Window / time.Second),
		Fingerprint: hex.EncodeToString(rec.Fingerprint),
		Created:     rec.Created.UTC(), MaybeSent: rec.MaybeSent, FirstSent: utc(rec.FirstSent), NextAttempt: utc(rec.NextAttempt),
		SendBefore: utc(rec.SendBefore), Finished: utc(rec.Finished),
		Attempts: rec.Attempts, Sends: rec.Sends, Swept: rec.Swept, Omitted: rec.Omitted, BodyBytes: len(rec.Body),
	}
	if a := rec.Answer; a != nil {
		v.Answer = &answerView{
			Status: a.Status, At: utc(a.At), Replayed: a.Replayed, AlreadyDone: a.AlreadyDone,
			BodyBytes: len(a.Body), BodyDropped: a.BodyDropped,
		}
	}
	if !parts.bodies {
		return v
	}
	v.Target, v.Header = rec.Target, rec.Header
	v.Body, v.BodyBase64 = bodyView(rec.Body)
	if a := rec.Answer; a != nil {
		v.Answer.Header = a.Header
		v.Answer.Body, v.Answer.BodyBase64 = bodyView(a.Body)
	}
	return v
}

// bodyView shows JSON as it is, other text as a string, the rest as base64.
func bodyView(b []byte) (text json.RawMessage, binary []byte) {
	switch {
	case len(b) == 0:
		return nil, nil
	case json.Valid(b):
		return b, nil
	case utf8.Valid(b):
		return json.RawMessage(jsonString(string(b))), nil
	}
	return nil, b
}

// utc keeps the zero time zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// printRecords writes one line of JSON for each record.
func printRecords(ctx context.Context, ses *session, q persist.Query, out io.Writer, parts recordParts) error {
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err := eachRecord(ctx, ses, q, func(rec *persist.Record) error { return enc.Encode(exportOf(rec, parts)) })
	if ferr := w.Flush(); err == nil && ferr != nil {
		return &exitError{status: exitUnknown, err: ferr}
	}
	return err
}

// exportOf is the view for machines: every body is base64, so that its bytes
// survive whatever reads the JSON.
func exportOf(rec *persist.Record, parts recordParts) recordView {
	v := viewOf(rec, parts)
	if parts.bodies {
		v.Body, v.BodyBase64 = nil, rec.Body
		if v.Answer != nil {
			v.Answer.Body, v.Answer.BodyBase64 = nil, rec.Answer.Body
		}
	}
	return v
}

func journalExportCommand(f *journalFlags, s streams) *cobra.Command {
	var parts recordParts
	var name string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write all records as NDJSON",
		Long: `Write all records, oldest first, one line of JSON each. Query strings, headers
and bodies, which may hold personal data, are there with --bodies only, the
bodies in base64. No credentials are in a journal.`,
		Example: `  oncehttp journal export --journal payments.db > payments.ndjson
  oncehttp journal export --journal payments.db --bodies --out payments.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name != "" && f.path != "" && samePath(name, f.path) {
				return errSameFile(name, f.path)
			}
			return f.withJournal(func(ses *session) error {
				out, closeOut, err := openOut(name, s.out)
				if err != nil {
					return err
				}
				err = printRecords(cmd.Context(), ses, f.query(), out, parts)
				return joinExit(err, closeOut())
			})
		},
	}
	cmd.Flags().BoolVar(&parts.bodies, "bodies", false, "with query strings, headers and bodies")
	cmd.Flags().StringVar(&name, "out", "", "write here instead of stdout")
	return cmd
}
