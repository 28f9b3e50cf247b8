// Package check is oncehttp check: the conformance suite against a server.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	osexec "os/exec"
	"reflect"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/profile"
)

// checkFlags are the flags of check, as given.
type checkFlags struct {
	conformance.Options
	profile string
	headers []string
	as      []string
	restart string
	expire  string
	outage  string
	recover string
	list    bool
	explain bool
	report  terminal.ReportFlags
}

// Command returns the command oncehttp check.
func Command(s terminal.Streams) *cobra.Command {
	f := newCheckFlags()
	cmd := &cobra.Command{
		Use:     "check URL",
		Short:   "Tell whether a server honours idempotency keys",
		Long:    longHelp,
		Example: examples,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "run" { // as other suites spell it
				args = args[1:]
			}
			if f.list {
				return listCases(f.Options, false, s.Out)
			}
			if len(args) != 1 {
				return errors.New("check: want one URL; see oncehttp check --help")
			}
			return f.run(cmd.Context(), args[0], s)
		},
	}
	f.bind(cmd)
	cmd.AddCommand(listCommand(s), explainCommand(s), reportCommand(s), diffCommand(s), doctorCommand(s))
	return cmd
}

// newCheckFlags returns flags with the defaults of the test suite. Body and content type stay empty: the profile of the API decides them.
func newCheckFlags() *checkFlags {
	f := &checkFlags{Options: conformance.Defaults()}
	f.Body, f.ContentType = "", ""
	return f
}

// bind adds all flags of check to cmd.
func (f *checkFlags) bind(cmd *cobra.Command) {
	f.bindTarget(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.Run, "run", nil, "only cases that match, such as 'scope/**'; may be repeated")
	fs.StringArrayVar(&f.Skip, "skip", nil, "leave out cases that match; may be repeated")
	fs.BoolVar(&f.Quick, "quick", false, "only replay, conflict, scope and inflight/once")
	fs.IntVar(&f.Rounds, "rounds", f.Rounds, "how often a burst is tried")
	fs.Uint64Var(&f.Seed, "seed", 0, "repeats the random parts of a run (default: chosen, and reported)")
	fs.DurationVar(&f.Timeout, "timeout", f.Timeout, "bounds the whole run")
	fs.IntVar(&f.MaxRequests, "max-requests", f.MaxRequests, "bounds the requests of the run")
	fs.IntVar(&f.Parallel, "parallel", f.Parallel, "cases at once")
	fs.IntVar(&f.Repeat, "repeat", f.Repeat, "run every case so many times, to show flakes")
	fs.DurationVar(&f.Hold, "hold", f.Hold, "how long an operation is kept slow so that others overlap with it")
	fs.DurationVar(&f.Settle, "settle", f.Settle, "how long a key may take to resolve after a fault")
	fs.BoolVar(&f.list, "list", false, "print the chosen cases and send nothing")
	fs.BoolVar(&f.Explore, "explore", false, "search in place of the cases: sequences of requests that no case names, shortened where they fail")
	fs.IntVar(&f.Histories, "histories", 0, "how many sequences --explore draws (default 300, or as many as --for lets)")
	fs.DurationVar(&f.For, "for", 0, "how long --explore draws sequences, such as 60s; --timeout is counted on top")
	fs.IntVar(&f.MaxFindings, "max-findings", f.MaxFindings, "ends --explore once it has found so many contradictions")
	fs.BoolVar(&f.Volume, "volume", false, "other cases in their place: thousands of keys, bodies and connections; how many is said before, within --max-requests and --max-effects")
	fs.BoolVar(&f.explain, "explain", false, "print what was learned of the server, in place of the verdicts")
	f.report.Bind(fs)
}

// bindTarget adds the flags for the way to the target, and for its abilities, to cmd. The commands check and check doctor have them.
func (f *checkFlags) bindTarget(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.profile, "profile", profile.Draft07().Name, session.ProfileUsage)
	fs.StringVar(&f.KeyHeader, "key-header", "", "the header that carries the key, if it is not the profile's: X-Request-ID, X-Idempotency-Key")
	fs.BoolVar(&f.KeyQuoted, "key-quoted", false, "write the key in double quotes, as the draft does")
	fs.StringVar(&f.KeyField, "key-field", "", "carry the key in the body: a member such as /idempotency_key, or a field of a form")
	fs.StringVar(&f.KeyFormat, "key-format", "", "uuid4 or uuid7 (default: as the profile says, else uuid4)")
	fs.StringVar(&f.KeyPrefix, "key-prefix", "", "stands in front of every key")
	fs.StringVar(&f.TokenPath, "token-path", "", "where a key is fetched before each operation, such as /tokens (default: keys are made here)")
	fs.StringVar(&f.TokenMethod, "token-method", "", "GET or POST, for --token-path (default GET)")
	fs.StringVar(&f.TokenPointer, "token-pointer", "", "JSON pointer to the key in the answer of --token-path (default /token; else the whole text)")
	fs.StringVar(&f.Name, "name", "", "a short name of the target for headings")
	fs.StringVar(&f.Method, "method", f.Method, "the method of an operation")
	fs.StringVar(&f.Body, "body", f.Body, "the template of a body, or @FILE (default: {\"reference\":\"{ref}\",\"amount\":100}, or the same as a form)")
	fs.StringVar(&f.ContentType, "content-type", f.ContentType, "of the body (default: JSON or a form, as the profile says)")
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "'Name: value', or @FILE with one a line; may be repeated")
	fs.StringArrayVar(&f.as, "as", nil, "a header that makes a request a second caller's, or @FILE; may be repeated")
	fs.StringVar(&f.OtherMethod, "other-method", "", "a second method that is taken with the same body (default: PATCH is tried, then PUT)")
	fs.StringVar(&f.SecondPath, "second-path", "", "another operation that takes the same body, such as /refunds")
	fs.StringVar(&f.ActionPath, "action-path", "", "an operation without a body on what was made, such as '/payments/{id}/cancel'")
	fs.StringVar(&f.IDPointer, "id-pointer", f.IDPointer, "JSON pointer to what names the effect in an answer")
	fs.StringVar(&f.Witness, "witness", "", "'URL?ref={ref}#/pointer' that tells how many effects a reference had")
	fs.DurationVar(&f.EffectWait, "effect-wait", f.EffectWait, "how long after its answer an operation may still have an effect")
	fs.StringVar(&f.DelayQuery, "delay-query", "", "makes one operation slow, such as 'sleep={ms}'")
	fs.StringVar(&f.FailQuery, "fail-query", "", "makes one operation answer a status, such as 'fail={status}'")
	fs.StringVar(&f.CrashQuery, "crash-query", "", "makes the handler of one operation crash, such as 'crash=1'")
	fs.StringVar(&f.restart, "restart-cmd", "", "a command that kills the target hard and starts it again")
	fs.StringVar(&f.expire, "expire-cmd", "", "a command that makes the target forget its keys")
	fs.StringVar(&f.outage, "outage-cmd", "", "a command that takes the target's store away; with --recover-cmd")
	fs.StringVar(&f.recover, "recover-cmd", "", "a command that gives the store back")
	fs.DurationVar(&f.Window, "window", 0, "how long the target says that it keeps keys; waited for up to 10s")
	fs.StringArrayVar(&f.AllowHosts, "allow-host", nil, "a host besides loopback that may be contacted; may be repeated")
	fs.IntVar(&f.MaxEffects, "max-effects", 0, "bounds the operations of the run; elsewhere than on loopback other ways to send are tried only with it (default: no bound)")
	fs.BoolVar(&f.NoProbe, "no-probe", false, "where the first operation is not taken, try no other way to send it")
	fs.DurationVar(&f.AnswerTimeout, "answer-timeout", f.AnswerTimeout, "bounds each request")
}

// options checks the flags, and returns the options of the test suite against url. It reads the files that flags name, and sends nothing.
func (f *checkFlags) options(url string) (conformance.Options, error) {
	o := f.Options
	o.URL = url
	var err error
	if o.Profile, err = session.FindProfile(f.profile); err != nil {
		return o, err
	}
	if o.Header, err = session.ParseHeaders(f.headers); err != nil {
		return o, err
	}
	if len(f.as) > 0 {
		if o.As, err = session.ParseHeaders(f.as); err != nil {
			// ParseHeaders names --header in its errors.
			return o, &terminal.SaidError{Text: strings.Replace(err.Error(), "--header", "--as", 1), Err: err}
		}
	}
	if name, isFile := strings.CutPrefix(o.Body, "@"); isFile {
		text, err := terminal.ReadBounded(name, input.BodyFileBytesMax)
		if err != nil {
			return o, fmt.Errorf("--body: %w", err)
		}
		o.Body = string(text)
	}
	if (f.outage == "") != (f.recover == "") {
		return o, errors.New("--outage-cmd and --recover-cmd go together")
	}
	o.Restart, o.Expire = shell(f.restart), shell(f.expire)
	o.Outage, o.Recover = shell(f.outage), shell(f.recover)
	return o, nil
}

// shell returns a function to run a command line of the user's own; nil if the line is empty. The command's output is dropped: a server started by it would hold that
// open, and the function would wait for its end.
func shell(line string) func(context.Context) error {
	if line == "" {
		return nil
	}
	return func(ctx context.Context) error {
		name, flag := "sh", "-c"
		if runtime.GOOS == "windows" {
			name, flag = "cmd", "/C"
		}
		if err := osexec.CommandContext(ctx, name, flag, line).Run(); err != nil {
			return fmt.Errorf("the command %q: %w", words.Clip(line), err)
		}
		return nil
	}
}

// run checks the flags, runs the suite against url, and writes the report. The error has the exit status.
func (f *checkFlags) run(ctx context.Context, url string, s terminal.Streams) error {
	o, err := f.options(url)
	if err != nil {
		return err
	}
	if f.explain && (f.Explore || f.Volume) {
		return errors.New("--explain goes with the cases: it is one at a time with --explore and --volume")
	}
	if err := f.report.Check(f.ids()); err != nil {
		return err
	}
	chosen, err := conformance.Select(o)
	if err != nil {
		return checkError(err)
	}
	if o.Volume {
		plan := conformance.PlanVolume(o)
		fmt.Fprintf(s.Err, "check --volume sends up to %d requests, and up to %d operations among them\n", plan.Requests, plan.Effects)
	}
	bar := newBar(s.Err, io.Discard, len(chosen), "check") // the report is written after the bar, and cannot run into it
	o.Done = func(conformance.Result) { bar.add() }
	rep, err := conformance.Run(ctx, o)
	bar.finish()
	if rep == nil {
		return checkError(err)
	}
	written, formErr := asReport(rep)
	if formErr != nil {
		return &terminal.ExitError{Status: report.ExitError, Err: formErr}
	}
	if f.explain && err == nil {
		if err := printLearned(rep, s.Out); err != nil {
			return &terminal.ExitError{Status: report.ExitError, Err: err}
		}
		return terminal.ExitWith(rep.ExitStatus())
	}
	status := f.report.Conclude(written, f.ids(), s.Out) // writes the report; the status leaves out known failures
	if err != nil {                                      // the run was cut short; its report so far has been written
		return &terminal.ExitError{Status: report.ExitError, Err: errors.Join(terminal.Unsaid(status), checkError(err))}
	}
	return status
}

// ids returns the ids of cases that a list of known failures may name; nil: any. With --explore they include those in the list itself, since a finding may name several
// relations together.
func (f *checkFlags) ids() []string {
	switch {
	case f.Volume:
		return caseIDs(conformance.Volumes())
	case !f.Explore:
		return conformance.IDs()
	case f.report.List == nil:
		return nil
	}
	return append(f.report.List.IDs(), caseIDs(conformance.Relations())...)
}

// caseIDs returns the ids of cases, in their order.
func caseIDs(cases []conformance.Case) []string {
	ids := make([]string, len(cases))
	for i, c := range cases {
		ids[i] = c.ID
	}
	return ids
}

// checkError returns an error of the test suite in words of the command: options are named by their flags. A wrong option (UsageError, ErrUsage) gets the exit
// status of a wrong call, any other error that of a failed run.
func checkError(err error) error {
	var ue *conformance.UsageError
	switch {
	case errors.As(err, &ue):
		return &terminal.SaidError{Text: flagOf(ue.Option) + ": " + withFlags(ue.Detail), Err: err}
	case errors.Is(err, conformance.ErrUsage):
		return err
	}
	text := withFlags(strings.TrimPrefix(err.Error(), "conformance: "))
	return &terminal.ExitError{Status: report.ExitError, Err: &terminal.SaidError{Text: text, Err: err}}
}

// withFlags replaces the names of the suite's options in a text by the names of their flags. At the beginning of the text a name is left alone: there
// it is an ordinary word, such as Rounds.
func withFlags(text string) string {
	names := make([]string, 0, 32)
	options := reflect.TypeFor[conformance.Options]()
	for i := range options.NumField() {
		names = append(names, options.Field(i).Name)
	}
	field := regexp.MustCompile(`([ (])(` + strings.Join(names, "|") + `)\b`)
	return field.ReplaceAllStringFunc(text, func(match string) string {
		return match[:1] + flagOf(match[1:])
	})
}

// flagOf spells an option's name as its flag: "AllowHosts" is "--allow-host".
func flagOf(option string) string {
	switch option {
	case "URL":
		return "URL"
	case "AllowHosts":
		return "--allow-host"
	case "IDPointer":
		return "--id-pointer"
	case "Restart", "Expire", "Outage", "Recover":
		option += "Cmd"
	}
	var b strings.Builder
	b.WriteString("--")
	for i, r := range option {
		if upper := r >= 'A' && r <= 'Z'; upper {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
