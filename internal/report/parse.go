package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The bounds of Parse.
const (
	// ParseBytesMax bounds a report file, in bytes.
	ParseBytesMax = 64 << 20
	// CasesMax bounds the cases of a report, and ExchangesMax the exchanges of
	// one case.
	CasesMax     = 10_000
	ExchangesMax = 10_000
	// idBytesMax bounds the ID of a case.
	idBytesMax = 128
	// millisMax bounds every time in a report: some 30 years.
	millisMax = 1e12
)

// ErrInvalid is matched by every error about a report's contents.
var ErrInvalid = errors.New("report: not a valid report")

// invalidError is a fault of a report, in one line.
type invalidError struct{ what string }

// Error returns the fault of the file, with the name of the package before it.
func (e *invalidError) Error() string { return "report: " + e.what }

// Is makes errors.Is match ErrInvalid.
func (e *invalidError) Is(target error) bool { return target == ErrInvalid }

// invalidf returns an error that is ErrInvalid.
func invalidf(format string, args ...any) error {
	return &invalidError{what: oneLine(fmt.Sprintf(format, args...))}
}

// Parse reads one report in its JSON form and checks it. Unknown members
// are ignored: so a report of a later suite with the same schema
// can be read. The summary is computed anew. Errors match ErrInvalid, but for
// those of r itself.
func Parse(r io.Reader) (*Report, error) {
	data, err := io.ReadAll(io.LimitReader(r, ParseBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if len(data) > ParseBytesMax {
		return nil, invalidf("longer than %d bytes", ParseBytesMax)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, invalidf("empty; a report in JSON was expected")
	}
	rep := new(Report)
	if err := json.Unmarshal(data, rep); err != nil {
		return nil, syntaxError(data, err)
	}
	if err := rep.Validate(); err != nil {
		return nil, err
	}
	rep.Summary = Summarize(rep.Cases)
	return rep, nil
}

// syntaxError names the line of the fault in the JSON.
func syntaxError(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return invalidf("line %d: not JSON: %v", lineAt(data, syntax.Offset), syntax)
	case errors.As(err, &kind) && kind.Field == "":
		return invalidf("a JSON object was expected, not %s", kind.Value)
	case errors.As(err, &kind):
		return invalidf("line %d: %s cannot be a %s", lineAt(data, kind.Offset), clip(kind.Field, 80), kind.Value)
	}
	return invalidf("%v", err)
}

// lineAt returns the number of the line of an offset, from 1. An offset outside of data counts as its nearest end.
func lineAt(data []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(data)))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// Validate checks all demands of Parse on a report. Its error names
// the first fault and matches ErrInvalid. A valid report
// can be written in every format and read back.
func (r *Report) Validate() error {
	if r.Schema != Schema {
		return invalidf("schema is %d, this version reads schema %d", r.Schema, Schema)
	}
	switch r.Kind {
	case "", KindCheck, KindReferee:
	default:
		return invalidf("kind %q is neither %q nor %q", clip(r.Kind, 40), KindCheck, KindReferee)
	}
	if !validMillis(r.MS) {
		return invalidf("ms %v is out of range", r.MS)
	}
	if len(r.Cases) > CasesMax {
		return invalidf("%d cases, more than %d", len(r.Cases), CasesMax)
	}
	seen := make(map[string]bool, len(r.Cases))
	for i := range r.Cases {
		c := &r.Cases[i]
		if err := c.validate(); err != nil {
			return invalidf("case %d (%q): %v", i+1, clip(c.ID, 60), err)
		}
		if seen[c.ID] {
			return invalidf("case %d (%q): another case has the same id", i+1, c.ID)
		}
		seen[c.ID] = true
	}
	return nil
}

// ValidID reports whether id can name a case: 1 to 128 bytes of A-Z a-z 0-9
// and . _ ~ / -.
func ValidID(id string) bool {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~/-"
	foreign := func(r rune) bool { return !strings.ContainsRune(alphabet, r) }
	return id != "" && len(id) <= idBytesMax && !strings.ContainsFunc(id, foreign)
}

// validMillis reports whether a duration in milliseconds is not negative, and not too long.
func validMillis(ms float64) bool { return ms >= 0 && ms <= millisMax }

// validate returns an error about the first value of a case out of its bounds; nil if there is none.
func (c *Case) validate() error {
	switch {
	case !ValidID(c.ID):
		return errors.New("id is not 1 to 128 characters of letters, digits and . _ ~ / -")
	case !c.Level.Valid():
		return fmt.Errorf("level %q is not one of %s", clip(string(c.Level), 40), join(Levels()))
	case !c.Verdict.Valid():
		return fmt.Errorf("verdict %q is not one of %s", clip(string(c.Verdict), 40), join(Verdicts()))
	case c.Witness != "" && !c.Witness.Valid():
		return fmt.Errorf("witness %q is not one of %s", clip(string(c.Witness), 40), join(Witnesses()))
	case !validMillis(c.MS):
		return fmt.Errorf("ms %v is out of range", c.MS)
	case len(c.Exchanges) > ExchangesMax:
		return fmt.Errorf("%d exchanges, more than %d", len(c.Exchanges), ExchangesMax)
	}
	for i, f := range c.Findings {
		if !f.Verdict.Valid() {
			return fmt.Errorf("finding %d: verdict %q is not one of %s", i+1, clip(string(f.Verdict), 40), join(Verdicts()))
		}
	}
	for i, x := range c.Exchanges {
		if !validMillis(x.At) || !validMillis(x.Took) {
			return fmt.Errorf("exchange %d: at_ms or took_ms is out of range", i+1)
		}
		if x.Status < 0 || x.Status > 999 {
			return fmt.Errorf("exchange %d: status %d is out of range", i+1, x.Status)
		}
	}
	return nil
}

// join returns a list of names with commas.
func join[S ~string](list []S) string {
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = string(name)
	}
	return strings.Join(names, ", ")
}
