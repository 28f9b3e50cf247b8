package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/report"
)

// doctorCommand returns the command oncehttp check doctor.
func doctorCommand(s terminal.Streams) *cobra.Command {
	f := newCheckFlags()
	cmd := &cobra.Command{
		Use:   "doctor URL",
		Short: "Look whether check is set up well for a server",
		Long: `Send a handful of requests to URL and say what check would have to work with:
whether the server answers, whether a key does anything, whether the witness
counts, whether operations can be made to overlap, and which cases would be
skipped for want of a flag.

Exit status: 0 check can tell something; 1 the server does not do what check
builds on, or what a flag names does not work; 2 the call is wrong; 3 the target is unreachable,
or takes no plain operation, as without its credentials (-H).`,
		Example: `  oncehttp check doctor http://127.0.0.1:8080/payments --delay-query 'sleep={ms}'`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.examine(cmd.Context(), args[0], s) },
	}
	f.bindTarget(cmd)
	return cmd
}

// The verdicts of these cases show how well check is set up.
const (
	probeAnswer  = "replay/answered"
	probeOnce    = "replay/effects-once"
	probeOverlap = "inflight/once"
)

// examine sends the few requests of check doctor to url, and prints what check would have to work with. The error has the exit status.
func (f *checkFlags) examine(ctx context.Context, url string, s terminal.Streams) error {
	o, err := f.options(url)
	if err != nil {
		return err
	}
	o.Run, o.Reruns = []string{probeAnswer, probeOnce, probeOverlap}, -1 // a failed case is not tried again
	for _, p := range givenFlags(&o) {
		o.Run = append(o.Run, p.probe)
	}
	rep, err := conformance.Run(ctx, o)
	if err != nil {
		return checkError(err)
	}
	return diagnose(rep, &o, s.Out)
}

// diagnose prints one line for each probe (a small test of the target), and for each missing flag. It returns an error with the exit status if a probe failed or a
// given flag does not work.
func diagnose(rep *conformance.Report, o *conformance.Options, out io.Writer) error {
	found := map[string]conformance.Result{}
	for _, c := range rep.Cases {
		found[c.ID] = c
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, text string) { _, _ = fmt.Fprintf(w, "%s\t%s\n", name, text) } // Flush gives the error
	answer, once, overlap := found[probeAnswer], found[probeOnce], found[probeOverlap]
	row("target", rep.Target+" takes "+taken(rep, answer.Verdict))
	row("key", verdictLine(answer, "a repeat is answered with the outcome of the first"))
	row("effects", verdictLine(once, "a repeat is not executed again"))
	row("witness", witnessLine(rep.Witness))
	row("overlap", verdictLine(overlap, "operations overlap, and one effect comes of it"))
	// idle: a given flag does not work. A witness is a place at the server that tells the number of effects.
	idle := o.Witness != "" && rep.Witness != conformance.WitnessCounted && rep.Witness != conformance.WitnessListed
	if idle {
		row("--witness", "does not work: "+rep.Headline)
	}
	for _, p := range givenFlags(o) { // a reason that names --witness is no fault of the flag
		if c := found[p.probe]; c.Verdict == conformance.VerdictInconclusive && !strings.Contains(c.Reason, "--witness") {
			row(p.flag, "does not work: "+c.Reason)
			idle = true
		}
	}
	for _, l := range lacking(o) {
		row("missing", l)
	}
	if err := w.Flush(); err != nil {
		return &terminal.ExitError{Status: report.ExitError, Err: err}
	}
	if answer.Verdict == conformance.VerdictFail || once.Verdict == conformance.VerdictFail {
		return terminal.ExitWith(report.ExitFailed)
	}
	if answer.Verdict == conformance.VerdictError || once.Verdict == conformance.VerdictError {
		return &terminal.ExitError{Status: report.ExitError, Err: errors.New("check doctor: a probe failed in itself: " + answer.Reason + once.Reason)}
	}
	if idle {
		return terminal.ExitWith(report.ExitFailed)
	}
	return nil
}

// givenFlag is a flag of the call, and the case for testing it.
type givenFlag struct{ flag, probe string }

// givenFlags returns the given flags that a probe can test, each with its probe.
func givenFlags(o *conformance.Options) []givenFlag {
	var all []givenFlag
	for _, f := range []struct {
		given bool
		givenFlag
	}{
		{o.DelayQuery != "", givenFlag{"--delay-query", probeOverlap}},
		{o.FailQuery != "", givenFlag{"--fail-query", "outcome/5xx-resolves"}},
		{o.CrashQuery != "", givenFlag{"--crash-query", "outcome/crash-resolves"}},
		{o.SecondPath != "", givenFlag{"--second-path", "replay/second-path"}},
		{o.As != nil, givenFlag{"--as", "replay/second-caller"}},
		{o.Expire != nil, givenFlag{"--expire-cmd", "time/expires"}},
		{o.Restart != nil, givenFlag{"--restart-cmd", "restart/replay-survives"}},
	} {
		if f.given {
			all = append(all, f.givenFlag)
		}
	}
	return all
}

// taken returns words for the requests that the target accepts, with the flags for them if they were found by trying. answer is the verdict of the test with the
// first request: if it was not decided, only connections are known to be accepted.
func taken(rep *conformance.Report, answer conformance.Verdict) string {
	switch {
	case rep.WayIn != "":
		return "operations with " + rep.WayIn
	case answer == conformance.VerdictInconclusive, answer == conformance.VerdictError:
		return "connections"
	}
	return "operations as they are sent"
}

// verdictLine returns the result of a probe (a small test of the target) in words. good is the text for a pass.
func verdictLine(c conformance.Result, good string) string {
	switch c.Verdict {
	case conformance.VerdictPass:
		return "ok: " + good
	case conformance.VerdictSkip, conformance.VerdictInconclusive, conformance.VerdictError:
		return fmt.Sprintf("%s: %s", c.Verdict, c.Reason)
	}
	return fmt.Sprintf("%s: expected %s; %s", c.Verdict, c.Expected, c.Actual)
}

// witnessLine returns in words how effects are counted: by a witness (a place at the server that tells their number), by the ids in answers, or not at all.
func witnessLine(w conformance.Witness) string {
	switch w {
	case conformance.WitnessCounted, conformance.WitnessListed:
		return fmt.Sprintf("ok: effects are %s", w)
	case conformance.WitnessInferred:
		return "effects are inferred from ids in answers, which misses those whose answers nobody saw; --witness counts them"
	}
	return "none: neither --witness nor --id-pointer leads to anything that tells effects apart"
}

// lacking returns a line for each missing flag, with the number of cases in need of it.
func lacking(o *conformance.Options) []string {
	var lines []string
	for _, l := range []struct {
		need conformance.Need
		flag string
		have bool
	}{
		{conformance.NeedDelay, "--delay-query", o.DelayQuery != ""},
		{conformance.NeedFail, "--fail-query", o.FailQuery != ""},
		{conformance.NeedCrash, "--crash-query", o.CrashQuery != ""},
		{conformance.NeedPath, "--second-path", o.SecondPath != ""},
		{conformance.NeedAction, "--action-path", o.ActionPath != ""},
		{conformance.NeedPrincipal, "--as", o.As != nil},
		{conformance.NeedExpiry, "--expire-cmd", o.Expire != nil || o.Window > 0},
		{conformance.NeedRestart, "--restart-cmd", o.Restart != nil},
		{conformance.NeedOutage, "--outage-cmd and --recover-cmd", o.Outage != nil},
	} {
		if n := needing(l.need); !l.have && n > 0 {
			lines = append(lines, fmt.Sprintf("%s; without it %s skipped", l.flag, isAre(n)))
		}
	}
	return lines
}

// needing returns the number of cases that are skipped without this ability of the server, such as to be slow or to crash.
func needing(need conformance.Need) int {
	n := 0
	for _, c := range conformance.Cases() {
		if slices.Contains(c.Needs, need) {
			n++
		}
	}
	return n
}

// isAre returns a number of cases with its verb: "1 case is", "3 cases are".
func isAre(cases int) string {
	if cases == 1 {
		return "1 case is"
	}
	return fmt.Sprintf("%d cases are", cases)
}
