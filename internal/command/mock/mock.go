// Package mock is oncehttp mock: a server that honours keys and breaks on demand.
package mock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/bugs"
	"github.com/oncehttp/oncehttp/mockserver/referee"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/sign"
)

// mockFlags are the flags of mock, as given.
type mockFlags struct {
	addr    string
	faults  string
	seed    uint64
	window  time.Duration
	profile string
	header  string
	natural session.NaturalFlags
	signing string
	bug     string
	pointer string
	require bool
	access  string
	assume  bool
	events  webhookFlags

	referee  bool
	script   string
	expect   int
	attempts int
	report   terminal.ReportFlags
}

const scriptBytesMax = 4 << 20

// mockHelp is the help of mock.
const mockHelp = `Serve, until Ctrl-C, a payment API that honours idempotency keys as a profile
says, breaks on demand, and keeps a ledger of what really took effect. The first
line on stdout is "listening on URL".

POST /payments takes any JSON object and answers 201 with an id; GET /_ledger
shows sends and effects by key, and violations of the rules for clients;
POST /_reset clears everything. With --profile stripe or increase, a GET of
/payments lists what the caller made there, as that API does. It is for tests:
it listens on 127.0.0.1 unless told, authenticates nobody, and keeps everything
in memory.

--faults is a list of NAME[:ARGUMENT]=PROBABILITY: drop-before, drop-after,
reset, reset-after, hang, hang-after, slow-body, cut-body, redirect, huge-error,
expire, kill-idle, duplicate (delivered twice), late (delivered after its retry,
or late:2s after a time), or a status such as 503 or 429:2 (with Retry-After).

--access-log adds a line of JSON for each request: when it came, method, path, key,
status (0: none), bytes and milliseconds, the fault that it met, and whether it
was a replay. No body, header or query is in it.

With --referee it plays a hard server to a client in any language and judges it:
one key for each operation, the same bytes on every attempt, Retry-After
honoured, waits that grow, a replay taken for an answer, and so on. --script
says what each operation meets, --operation-pointer what names an operation in a
request. The verdict comes after --expect operations, on POST /_finish, or on
Ctrl-C, whichever is first.

Exit status: 0 ended by Ctrl-C, or the client passed; 1 the client failed; 2 the
call is wrong, it cannot listen, or nothing was judged.`

// Command returns the command oncehttp mock.
func Command(s terminal.Streams) *cobra.Command {
	f := &mockFlags{}
	cmd := &cobra.Command{
		Use:   "mock",
		Short: "Serve a payment API that honours keys, breaks on demand, and counts effects",
		Long:  mockHelp,
		Example: `  oncehttp mock --faults 'drop-after=0.2,reset=0.05,503=0.1' --seed 7
  oncehttp mock --addr 127.0.0.1:8080 --profile stripe --window 1h
  oncehttp mock --referee --addr 127.0.0.1:8080 --expect 20 --format junit --out client.xml`,
		Args: settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.addr, "addr", "127.0.0.1:0", "HOST:PORT to listen on; port 0 takes a free one")
	fs.StringVar(&f.faults, "faults", "", "what breaks, and how often")
	fs.Uint64Var(&f.seed, "seed", 0, "decides which send meets which fault")
	fs.DurationVar(&f.window, "window", 0, "how long a key is known (default: as the profile says)")
	fs.StringVar(&f.profile, "profile", profile.Draft07().Name, "how keys are honoured: a name of oncehttp profile list, or a file")
	fs.BoolVar(&f.assume, "assume", false, "play what is common where the profile does not say")
	fs.StringVar(&f.header, "key-header", "", "the header that carries the key, such as X-Request-ID (default: as the profile says)")
	f.natural.Bind(fs)
	fs.StringVar(&f.signing, "sign", "", "a JSON file that says how requests must be signed, not more than 5 minutes ago and each once; see help signing")
	fs.StringVar(&f.bug, "bug", "", "play a broken server; list names them all, with what a customer sees and the check cases that catch it")
	fs.StringVar(&f.pointer, "operation-pointer", "", "JSON pointer to what names an operation in a body, such as /reference")
	fs.BoolVar(&f.require, "require-key", false, "answer 400 to a request without a key")
	fs.StringVar(&f.access, "access-log", "", "add a line of JSON for each request to this file, or to stdout (-)")
	f.events.bind(fs)
	fs.BoolVar(&f.referee, "referee", false, "judge the client")
	fs.StringVar(&f.script, "script", "", "the referee's script, a JSON file (default: every situation in which clients go wrong)")
	fs.IntVar(&f.expect, "expect", 0, "the verdict comes after so many operations (default: as the script says)")
	fs.IntVar(&f.attempts, "attempts-max", 0, "how many sends of one operation are within reason (default: as the script says)")
	f.report.Bind(fs)
	return cmd
}

// config returns the configuration of the mock server by the flags, with a referee (a judge of the client) if one was asked for. An error names the
// flag at fault.
func (f *mockFlags) config() (cfg mockserver.Config, judge *referee.Referee, err error) {
	if !knownBug(f.bug) {
		return cfg, nil, fmt.Errorf("--bug %s: no such bug; --bug list names them", words.Clip(f.bug))
	}
	p, err := f.played()
	if err != nil {
		return cfg, nil, err
	}
	mix, err := mockserver.ParseFaults(f.faults)
	if err != nil {
		return cfg, nil, mockError("--faults: ", err)
	}
	if f.window < 0 {
		return cfg, nil, errors.New("--window is negative")
	}
	if f.pointer != "" && f.pointer[0] != '/' {
		return cfg, nil, fmt.Errorf("--operation-pointer %s: want a JSON pointer, which starts with a slash, such as /reference", words.Clip(f.pointer))
	}
	if _, _, err := net.SplitHostPort(f.addr); err != nil {
		return cfg, nil, fmt.Errorf("--addr %s: want HOST:PORT", words.Clip(f.addr))
	}
	cfg = mockserver.Config{
		Profile: p, Mix: mix, Seed: f.seed, Window: f.window, Bug: f.bug, OperationPointer: f.pointer, RequireKey: f.require,
	}
	if judge, err = f.newReferee(); err != nil {
		return cfg, nil, err
	}
	if err := cmp.Or(f.setVerify(&cfg), f.events.set(&cfg)); err != nil {
		return cfg, nil, err
	}
	if err := f.checkAccess(); err != nil {
		return cfg, nil, err
	}
	if judge != nil { // a nil *Referee in the interface would not be nil
		cfg.Referee = judge
	}
	if err := cfg.Validate(); err != nil {
		return cfg, nil, mockError("", err)
	}
	return cfg, judge, nil
}

// played returns the profile that the mock server plays, with the changes of other flags, such as --key-header. An error of playable says that too little is
// known of the API.
func (f *mockFlags) played() (*profile.Profile, error) {
	p, err := session.FindProfile(f.profile)
	if err == nil {
		p, err = f.natural.Apply(p)
	}
	if err == nil {
		p, err = session.CarriedBy(p, f.header)
	}
	if err == nil {
		err = f.playable(p)
	}
	return p, err
}

// setVerify makes the mock check signatures by the file of --sign, with the usual bound on their age (the zero Freshness: 5 minutes). Callers are otherwise
// told apart by the Authorization header. A signature in that header differs on each attempt, so all requests count as one caller's then.
func (f *mockFlags) setVerify(cfg *mockserver.Config) error {
	if f.signing == "" {
		return nil
	}
	s, err := session.ReadSignature(f.signing, cfg.Profile)
	if err == nil {
		if cfg.Verify, err = s.Verifier(sign.Freshness{}); err != nil {
			err = session.SignError(f.signing, err)
		}
	}
	if l, isLayout := s.(sign.Layout); isLayout && l.Headers["Authorization"] != "" {
		cfg.Caller = func(*http.Request) string { return "" }
	}
	return err
}

// knownBug reports whether name is that of a broken server; "" is the sound one.
func knownBug(name string) bool {
	return name == "" || slices.ContainsFunc(bugs.All(), func(b bugs.Bug) bool { return b.Name == name })
}

// mockError returns an error of package mockserver in words of the command, after the name of the flag at fault.
func mockError(flag string, err error) error {
	return &terminal.SaidError{Text: flag + strings.TrimPrefix(err.Error(), "mockserver: "), Err: err}
}

// playable refuses a profile with unknown facts, because the mock would have to invent the API's answers. With --assume it plays what is common, and
// of a ready profile (known well enough for use) it plays the client's assumptions. Two facts may always be unknown: the window (how long a key is
// known), since --window or a cap gives it, and whether a 5xx is kept under the key (stored.server_error). A profile without a place for keys
// (Nowhere) is played only if the API refuses a business reference that was used before.
func (f *mockFlags) playable(p *profile.Profile) error {
	byReference := p.Reference != nil && len(p.Duplicate) > 0
	if p.Carrier.Place == profile.Nowhere && !byReference {
		return fmt.Errorf("--profile %s: it sends no key that the mock could honour; with --already-done, --lookup and --same the mock takes each number once", p.Name)
	}
	unknown := slices.DeleteFunc(p.Unknown(), func(name string) bool {
		return name == "window" || name == "stored.server_error" || name == "carrier" && f.header != "" // it was given
	})
	if len(unknown) == 0 || f.assume || p.State() == profile.StateReady {
		return nil
	}
	return fmt.Errorf("--profile %s: not known of this API: %s; --assume plays what is common instead", p.Name, strings.Join(unknown, ", "))
}

// newReferee returns the referee, which judges the client, with its script; nil without --referee. Then a flag of the referee is an error.
func (f *mockFlags) newReferee() (*referee.Referee, error) {
	if !f.referee {
		if f.script != "" || f.expect != 0 || f.attempts != 0 || f.report.Set() {
			return nil, errors.New("--script, --expect, --attempts-max, --format, --out, --known-failing, --verbose and --show-secrets are the referee's; add --referee")
		}
		return nil, nil
	}
	script := referee.DefaultScript()
	if f.script != "" {
		text, err := terminal.ReadBounded(f.script, scriptBytesMax)
		if err != nil {
			return nil, fmt.Errorf("--script %w", err)
		}
		if script, err = referee.ParseScript(text); err != nil {
			return nil, &terminal.SaidError{Text: "--script " + f.script + ": " + strings.TrimPrefix(err.Error(), "referee: script: "), Err: err}
		}
	}
	if f.expect < 0 || f.attempts < 0 {
		return nil, errors.New("--expect and --attempts-max cannot be negative")
	}
	if f.expect > 0 {
		script.Expect = f.expect
	}
	if f.attempts > 0 {
		script.AttemptsMax = f.attempts
	}
	if f.pointer != "" {
		script.OperationPointer = f.pointer
	}
	return referee.New(script), f.report.Check(ruleIDs())
}

// run serves the mock until ctx ends, and then writes the referee's report. With --bug list it prints the bugs instead.
func (f *mockFlags) run(ctx context.Context, s terminal.Streams) error {
	if f.bug == "list" {
		return listBugs(s.Out)
	}
	cfg, judge, err := f.config()
	if err != nil {
		return err
	}
	log, err := f.openAccess(s)
	if err != nil {
		return err
	}
	if log.w != nil { // by --access-log
		cfg.Access = log.add
	}
	return terminal.JoinExit(f.serve(ctx, mockserver.New(cfg), judge, log, s), log.close())
}

// serve serves requests until ctx ends, or the referee (a judge of the client) has its verdict, and then prints the end. judge may be nil: then only ctx ends it.
// The first line on stdout has the URL.
func (f *mockFlags) serve(ctx context.Context, server *mockserver.Server, judge *referee.Referee, log *accessLog, s terminal.Streams) error {
	log.mu.Lock() // a request right after the start is logged after the first line
	err := server.Listen(f.addr)
	if err == nil {
		terminal.Say(s.Out, "listening on %s", server.URL())
	}
	log.mu.Unlock()
	if err != nil {
		return mockError("--addr: ", err)
	}
	var finished <-chan struct{} // nil: only Ctrl-C ends it
	if judge != nil {
		finished = judge.Finished()
	}
	select {
	case <-ctx.Done():
	case <-finished:
	}
	err = f.conclude(server, judge, s)
	return terminal.JoinExit(err, server.Close())
}

// conclude prints the numbers of sends, effects, keys and violations of the rules for clients. Then it writes the report of judge on the client or, if judge
// is nil, each violation on one line.
func (f *mockFlags) conclude(server *mockserver.Server, judge *referee.Referee, s terminal.Streams) error {
	l := server.Ledger().Snapshot()
	terminal.Say(s.Err, "%s, %s, %s, %s", words.Count(l.Sends, "send"), words.Count(l.Effects, "effect"), words.Count(len(l.Keys), "key"), words.Count(len(l.Violations), "violation"))
	if judge != nil {
		return f.report.Conclude(RefereeReport(judge.Report()), ruleIDs(), s.Out)
	}
	for _, v := range l.Violations {
		terminal.Say(s.Err, "%s", strings.Join(strings.Fields(v.Error()), " "))
	}
	return nil
}

// ruleIDs returns the ids of the referee's rules, which a list of known failures may name.
func ruleIDs() []string {
	var ids []string
	for _, r := range referee.Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

// listBugs prints the broken servers that the mock can play, a line each, with what a customer sees and the cases of check that find it. Those of a hidden
// one find it only with a witness (a count of the effects at the server), since all its answers look right.
func listBugs(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, b := range bugs.All() {
		caught := strings.Join(b.Cases, ", ")
		if b.Hidden {
			caught = strings.TrimPrefix(caught+"; needs a witness", "; ")
		}
		line := b.Name + "\t" + b.Description + " " + b.Impact
		if caught != "" {
			line += " (" + caught + ")"
		}
		_, _ = fmt.Fprintln(w, line) // Flush gives the error
	}
	return w.Flush()
}
