package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
)

// dryRunRows is how many requests --dry-run shows.
const dryRunRows = 5

// dryRunLine is a request that would be sent. The values of headers, which may be
// credentials, are not shown.
type dryRunLine struct {
	Row     int             `json:"row"`
	Key     string          `json:"key"`
	Method  string          `json:"method"`
	URL     string          `json:"url"`
	Headers []string        `json:"headers"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// dryRun prints the first rows' requests, and what the survey found.
func (f *batchFlags) dryRun(ctx context.Context, in *input, p *plan, sv *survey, s streams) error {
	rows, err := newRows(in.name, in.reader(), p.needs)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	for range dryRunRows {
		r, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		req, err := p.request(ctx, &r)
		if err != nil {
			return err
		}
		l := dryRunLine{
			Row: r.number, Key: string(p.keyOf(&r, p.generation)), Method: req.Method, URL: req.URL.Redacted(),
			Headers: slices.Sorted(maps.Keys(req.Header)),
		}
		l.Body, _ = bodyView(r.body)
		if err := enc.Encode(l); err != nil {
			return pathless(err)
		}
	}
	say(s.err, "%s: %s, %d of them with the key and content of another; nothing was sent", in.name, count(sv.rows, "row"), len(sv.repeats))
	for _, text := range sv.totals.sums("row") {
		say(s.err, "%s", text)
	}
	return nil
}
