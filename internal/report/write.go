package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Options are the settings for writing a report. The zero value is safe to publish: no
// colour, no secrets, no list of known failures.
type Options struct {
	// Color uses ANSI colours in text; set it for a terminal only.
	Color bool
	// ShowSecrets leaves credentials in.
	ShowSecrets bool
	// Verbose shows the evidence of every case in text, not of failures only.
	Verbose bool
	// Width is the width of lines of text, in columns. Lines are broken between words. Zero: 100.
	Width int
	// Known marks expected failures; nil is an empty list.
	Known *Known
}

// Format names a way to write a report.
type Format string

// The formats.
const (
	Text     Format = "text"
	JSON     Format = "json"
	JUnit    Format = "junit"
	HTML     Format = "html"
	Markdown Format = "markdown"
)

// Formats returns all formats.
func Formats() []Format { return []Format{Text, JSON, JUnit, HTML, Markdown} }

// ParseFormat returns the format of a name. A name of no format is an error.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("report: format %q is not one of %s", clip(oneLine(name), 40), join(Formats()))
}

// ErrOneReport is the error of asking for several reports in a format for
// one.
var ErrOneReport = errors.New("report: this format holds one report; write the reports one by one")

// Write writes the reports in the format. Several are set side by side, cases
// by implementations, in text, HTML and Markdown; JUnit gives each its own
// suites; JSON holds one only (ErrOneReport).
func Write(w io.Writer, f Format, o Options, reports ...*Report) error {
	if len(reports) == 0 {
		return errors.New("report: no report to write")
	}
	several := len(reports) > 1
	switch {
	case f == JSON && several:
		return ErrOneReport
	case f == JSON:
		return WriteJSON(w, reports[0], o)
	case f == JUnit:
		return WriteJUnit(w, o, reports...)
	case f == HTML:
		return WriteHTML(w, o, reports...)
	case f == Text && several:
		return WriteTextMatrix(w, o, reports...)
	case f == Text:
		return WriteText(w, reports[0], o)
	case f == Markdown && several:
		return WriteMarkdownMatrix(w, o, reports...)
	case f == Markdown:
		return WriteMarkdown(w, reports[0], o)
	}
	_, err := ParseFormat(string(f))
	return err
}

// WriteJSON writes the report in its JSON form, indented, with members in a
// fixed order and a line break at the end.
func WriteJSON(w io.Writer, r *Report, o Options) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(prepare(r, o)); err != nil {
		return fmt.Errorf("report: json: %w", err)
	}
	return nil
}

// prepare returns the report for every writer: a copy without secrets, unless
// ShowSecrets, with its summary computed, its schema set, and lists never null in JSON. A case without a verdict becomes an Error, one without a witness has
// None, and a report without a kind is of a server.
func prepare(r *Report, o Options) *Report {
	cp := *r
	cp.Cases = slices.Clone(r.Cases)
	for i := range cp.Cases {
		if c := &cp.Cases[i]; len(c.Try) == 0 {
			c.Try = tryLines(r, c) // before the credentials go: it spells them as variables
		}
	}
	if !o.ShowSecrets {
		cp = *withoutSecrets(&cp)
	}
	cp.Schema, cp.Summary = Schema, Summarize(cp.Cases)
	if cp.Kind == "" {
		cp.Kind = KindCheck
	}
	cases := make([]Case, len(cp.Cases))
	for i, c := range cp.Cases {
		if c.Verdict == "" {
			c.Verdict = Error
			c.Reason = "the case ended without a verdict"
		}
		if c.Witness == "" {
			c.Witness = None
		}
		if c.Spec == nil {
			c.Spec = []Ref{}
		}
		if c.Exchanges == nil {
			c.Exchanges = []Exchange{}
		}
		cases[i] = c
	}
	cp.Cases = cases
	return &cp
}
