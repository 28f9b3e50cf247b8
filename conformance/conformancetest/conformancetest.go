// Package conformancetest makes subtests of the conformance suite, so that the
// author of a server or of a middleware needs ten lines:
//
//	func TestIdempotency(t *testing.T) {
//		conformancetest.Run(t, conformancetest.Handler(mymiddleware.New))
//	}
//
// Each case is a subtest, group/name: `go test -run 'TestIdempotency/scope'` shows one group. A
// failed case fails its subtest, with the expected and the actual state, impact and fix. A
// warning is logged. A case without a judgement is skipped, with the reason and the option that
// it needs: for two callers, say, Options.Header and Options.As with another Authorization. The
// flag -run does not shorten the run; Options.Run does.
package conformancetest

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// Target is the server to judge: a [Handler] or a [URL].
type Target interface {
	judge(ctx context.Context, o conformance.Options) (*conformance.Report, error)
}

// Handler is a middleware in this process. The suite supplies the handler behind
// it: see [conformance.RunHandler].
type Handler func(next http.Handler) http.Handler

// judge runs the suite against the handler.
func (h Handler) judge(ctx context.Context, o conformance.Options) (*conformance.Report, error) {
	return conformance.RunHandler(ctx, h, o)
}

// URL is the address for operations of a running server: see [conformance.Run].
type URL string

// judge runs the suite against the server at the URL.
func (u URL) judge(ctx context.Context, o conformance.Options) (*conformance.Report, error) {
	o.URL = string(u)
	return conformance.Run(ctx, o)
}

// Run judges the target and makes a subtest of each case: a failure is an error, an undecided case is skipped. Of several options the last counts;
// without any, the zero value is used. An error of the run ends the test. Run returns the report. It panics if t or target is nil.
func Run(t *testing.T, target Target, options ...conformance.Options) *conformance.Report {
	t.Helper()
	var o conformance.Options
	if len(options) > 0 {
		o = options[len(options)-1]
	}
	rep, err := target.judge(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range rep.Groups() {
		t.Run(group.Name, func(t *testing.T) {
			for i := range group.Cases {
				c := &group.Cases[i]
				t.Run(strings.TrimPrefix(c.ID, group.Name+"/"), func(t *testing.T) { tell(t, c) })
			}
		})
	}
	return rep
}

// tell reports the verdict on one case to its subtest: a failure is an error, what could not be judged is skipped, and a warning or an observation is
// logged only.
func tell(t *testing.T, c *conformance.Result) {
	switch c.Verdict {
	case conformance.VerdictPass:
	case conformance.VerdictSeen:
		t.Log(withOptions(c.Actual))
	case conformance.VerdictWarn:
		t.Log("warning: " + describe(c))
	case conformance.VerdictSkip, conformance.VerdictInconclusive:
		t.Skip(string(c.Verdict) + ": " + withOptions(c.Reason))
	default:
		t.Error(describe(c))
	}
}

// describe returns a failed or warning result as text, one line for each part.
func describe(c *conformance.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s) %s\n", c.Rule, c.Level, c.Odds)
	for _, line := range [][2]string{
		{"expected", c.Expected}, {"actual", c.Actual}, {"reason", c.Reason}, {"effects", c.Effects},
		{"impact", c.Impact}, {"fix", c.Fix},
	} {
		if line[1] != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", line[0], withOptions(line[1]))
		}
	}
	return b.String()
}

var flag = regexp.MustCompile(`--[a-z]+(?:-[a-z]+)*`)

// withOptions replaces the command's flags in a text of the suite by fields of Options: "--delay-query" becomes "Options.DelayQuery", and
// "--restart-cmd" "Options.Restart".
func withOptions(text string) string {
	return flag.ReplaceAllStringFunc(text, func(found string) string {
		switch found {
		case "--allow-host":
			return "Options.AllowHosts"
		case "--id-pointer":
			return "Options.IDPointer"
		}
		name := "Options."
		for part := range strings.SplitSeq(strings.TrimSuffix(found[2:], "-cmd"), "-") {
			name += strings.ToUpper(part[:1]) + part[1:]
		}
		return name
	})
}
