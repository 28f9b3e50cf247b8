// Package work is oncehttp work: a process to finish operations begun by others.
package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// leaseMin is the least value of oncehttp.Config.Lease.
const leaseMin = 100 * time.Millisecond

// workFlags are the flags of work, as given.
type workFlags struct {
	session.ClientFlags
	direct  string
	workers int
	listen  string
	origins []string
	auth    []string
	runs    []string // of --auth-command
	lines   bool
	lease   time.Duration
	onHeld  string

	webhooks webhookFlags
}

// workHelp is the help of work.
const workHelp = `Send what is pending in a journal whenever it falls due, also what other processes
enqueue there, each with its own key and bytes and by the profile it was begun
with. On a database any number of these may run on one journal: they take turns by
leases. A file is held by one of them alone.

On a database an eighth of the --workers, at least one of two or more, is kept free
of each server: one that never answers does not keep the others waiting.

On PostgreSQL and Redis it sends at once what other processes enqueue. On MariaDB,
and where it cannot hear them, which it says, it looks every ten seconds. Behind
PgBouncer in transaction mode nothing is heard: --journal-direct URL is the server
itself, for the one connection that listens.

--origin ORIGIN says where it sends, and may be repeated: what leads elsewhere stays
pending. On a database it is required, since others may write there what this sends.

Credentials are never in a journal. -H goes to the one --origin; --auth ORIGIN=@FILE
gives the headers of a file, one a line, to an origin, and may be repeated. The file is
read again while it works, so a renewed token needs no new start. --auth-command
'ORIGIN=PROGRAM ARG...' runs a program instead (split at spaces, without a shell), every
minute and after a 401 or 403; it prints the headers within 10s. Where a file or a
program fails, what it said before is used. --sign signs for all these origins, and
needs one. Where a
worker has -H, --auth, --auth-command or --sign, commands without credentials send nothing (journal
origins); to --auth ORIGIN=, or another --origin, it sends without any. What
was begun with a profile file needs that file again (--profile FILE); what was begun
with --key-header goes on under that header.

--listen ADDRESS answers GET /healthz with counters in JSON, those of the journal (what
is pending, held and oldest, and the oldest that is due and never sent) among them: 200
while it works, 503 while the journal takes no writes or it is stopping; and
GET /metrics for Prometheus.
--webhooks ADDRESS takes the API's events, signed by --webhook-secret: one that the
profile lists as proof settles its operation as happened (docs/webhooks.md).
--lines prints a line of JSON
for each operation that ends, as batch does, once its answer is durable, and for
each round after which one is held, or goes on later (unknown).

--on-held 'PROGRAM ARG...' (split at spaces, without a shell) is run for each operation
of the account that is held, by whomever: at once for a hold of this process, else within
30s. It gets the operation as a line of JSON on stdin, as journal show --json prints it,
has 30s, and runs for four at once. Unless it ends with 0 it is run again, a second
later, then after twice as long, at most after --max-pause, while the operation is held.
What is still held at the next start is told again; each worker with --on-held tells.

After SIGTERM, SIGINT, SIGHUP or SIGQUIT nothing more is begun; the attempts on the
wire come to their end, within --attempt-timeout at most, and are recorded. A second
signal ends it at once, and loses nothing either.

Exit status: 0 it was told to stop; 2 the call is wrong and nothing was sent; 3 the
journal could not be reached at the start, or takes nothing more, or the lines
could not be printed: start it again; 5 another process holds the file.`

// Command returns the command oncehttp work.
func Command(s terminal.Streams) *cobra.Command { return (&workFlags{}).command(s) }

// command returns the command oncehttp work, whose flags set those of f.
func (f *workFlags) command(s terminal.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "work --journal URL",
		Short: "Send what falls due in a journal, until it is told to stop",
		Long:  workHelp,
		Example: `  ONCEHTTP_JOURNAL=postgres://shop@db.internal/shop \
      oncehttp work --origin https://api.example.com --listen 127.0.0.1:9180
  oncehttp work --journal @journal.url --workers 64 --auth https://api.example.com=@auth.txt`,
		Args: settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	f.bind(cmd.Flags())
	return cmd
}

// bind binds all flags of work.
func (f *workFlags) bind(fs *pflag.FlagSet) {
	f.Bind(fs)
	fs.StringVar(&f.Journal, "journal", "", place.JournalUsage+" (or ONCEHTTP_JOURNAL)")
	place.BindDirect(fs, &f.direct)
	place.BindSealKey(fs, &f.SealKey)
	fs.IntVar(&f.workers, "workers", 8, "operations at once")
	fs.StringVar(&f.listen, "listen", "", "serve /healthz and /metrics at this address, such as 127.0.0.1:9180 (default: nowhere)")
	fs.StringArrayVar(&f.origins, "origin", nil, "a server to send to, such as https://api.example.com; the one that -H is for; may be repeated")
	fs.StringArrayVar(&f.auth, "auth", nil, "ORIGIN=@FILE: the headers of FILE, one a line, go to ORIGIN; may be repeated")
	fs.StringArrayVar(&f.runs, "auth-command", nil, "ORIGIN=PROGRAM ARG...: the headers that PROGRAM prints, one a line, go to ORIGIN; may be repeated")
	fs.DurationVar(&f.lease, "lease", 0, "how long an operation is kept for a worker that may have died, on a database (default 30s; at least 100ms)")
	fs.DurationVar(&f.Retry.MaxPause, "max-pause", 0, "longest pause before an operation that was tried in vain is tried again (default 15m)")
	f.webhooks.bind(fs)
	fs.StringVar(&f.onHeld, "on-held", "", "a program and its arguments, run for each operation that is held, until it ends with 0")
	fs.BoolVar(&f.lines, "lines", false, "print a line of JSON for each operation that ends, is held, or goes on later")
}

// run checks the flags, opens the journal, and sends what falls due in it until ctx ends. The session's own client sends nothing: work makes another. The
// error has the exit status.
func (f *workFlags) run(ctx context.Context, s terminal.Streams) error {
	cfg, err := f.config(s.Err)
	if err != nil {
		return err
	}
	events, err := f.webhooks.config()
	if err != nil {
		return err
	}
	at, err := (&session.JournalFlags{Journal: f.Journal, SealKey: f.SealKey}).Place()
	if err == nil {
		at.Direct, err = place.ParseDirect(f.direct, at)
	}
	if err != nil {
		return err
	}
	if cfg.Origins == nil && !at.IsFile() {
		return errors.New("say where it sends, with --origin ORIGIN, --auth ORIGIN=@FILE or --auth-command, for each server: others may write into a journal on a database")
	}
	ses, err := session.OpenSession(at, oncehttp.Config{})
	if err != nil {
		return err
	}
	return terminal.JoinExit(f.work(ctx, ses, cfg, events, s), ses.Close())
}

// config checks the flags, and returns the client's configuration. With credentials or signatures, the client sends only to the servers that they are for.
func (f *workFlags) config(stderr io.Writer) (oncehttp.Config, error) {
	cfg, header, err := f.ClientFlags.Config(stderr)
	if err != nil {
		return cfg, err
	}
	if f.workers < 1 || f.workers > session.WorkersMax {
		return cfg, fmt.Errorf("--workers must be from 1 to %d", session.WorkersMax)
	}
	switch {
	case f.lease != 0 && f.lease < leaseMin:
		return cfg, fmt.Errorf("--lease must be at least %v", leaseMin)
	case f.Retry.MaxPause < 0:
		return cfg, errors.New("--max-pause must not be negative")
	}
	cfg.ResumeWorkers, cfg.Lease = f.workers, f.lease
	if len(header) == 0 && len(f.auth)+len(f.runs) == 0 && cfg.Authorize == nil {
		cfg.Origins = f.origins // nil: every server, which only a journal in a file allows
		return cfg, checkOrigins(f.origins)
	}
	keys, err := f.keyring(header, stderr)
	switch {
	case err != nil:
		return cfg, err
	case len(keys) == 0:
		return cfg, errors.New("--sign: say for which servers it signs, with --origin ORIGIN, or --auth ORIGIN=@FILE (or --auth ORIGIN=) for each")
	}
	cfg.Authorize, cfg.Origins = session.InTurn(keys.authorize, cfg.Authorize), slices.Sorted(maps.Keys(keys))
	observe(&cfg, keys.see)
	return cfg, nil
}

// checkOrigins returns an error for a value of --origin that is neither an origin, such as https://api.example.com, nor a pattern of origins.
func checkOrigins(origins []string) error {
	for _, text := range origins {
		if _, err := request.ParseOrigins([]string{text}); err != nil {
			return fmt.Errorf("--origin %s: want an origin such as https://api.example.com", words.Clip(text))
		}
	}
	return nil
}

// parseOrigin returns an origin (scheme, host and port) as records spell it. A text that is no origin is an error.
func parseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.User != nil || u.RawQuery != "" {
		return "", errors.New("want an origin such as https://api.example.com")
	}
	return session.OriginOf(u), nil
}

// work sends what falls due in the journal until ctx ends or the journal takes nothing more. Meanwhile it serves /healthz and the API's events, and tells the
// program of --on-held. The error has the exit status. First it finds out whether the journal takes writes (mayWrite), and writes the values of --declined
// there (KeepDeclines).
func (f *workFlags) work(ctx context.Context, ses *session.Session, cfg oncehttp.Config, events oncehttp.WebhookConfig, s terminal.Streams) error {
	cfg.ProfileOf = session.RecordedProfile(cfg.Profile) // of a record begun with --key-header
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := newWorker(ses, f, s)
	if err := w.mayWrite(ctx); err != nil {
		return place.JournalError(ses.Place.Name, err)
	}
	if err := f.KeepDeclines(ctx, ses, func(text string) { terminal.Say(s.Err, "%s", text) }); err != nil {
		return err
	}
	w.declines = f.Declines
	w.stop = stop
	observe(&cfg, w.see)
	held, err := f.newHolds(ses, s.Err)
	if err != nil {
		return err
	}
	if held != nil {
		observe(&cfg, held.see)
	}
	cfg.Logger = slog.New(slog.DiscardHandler) // w.see prints lines of its own
	cfg.Journal = ses.Journal
	c, err := oncehttp.New(cfg)
	if err != nil {
		return terminal.Plain(err)
	}
	where, closeServer, err := w.serve(ctx, f.listen)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	heard, closeEvents, err := f.webhooks.serve(c, events)
	if err != nil {
		closeServer()
		return errors.Join(err, c.Close())
	}
	printed := w.printLines(stop)
	terminal.Say(s.Err, "working on %s%s%s", ses.Place.Name, where, heard)
	unhook := context.AfterFunc(ctx, func() {
		terminal.Say(s.Err, "stopping: waiting for the attempts on the wire; once more kills")
	})
	endTelling := held.start(ctx)
	err = c.Run(ctx)
	unhook()
	endTelling()
	closeEvents()
	_ = c.Close() // without a journal of its own it has no error
	perr := printed()
	closeServer()
	terminal.Say(s.Err, "%s", w.summary())
	switch {
	case perr != nil:
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: fmt.Errorf("the lines could not be printed: %w", words.Pathless(perr))}
	case errors.Is(err, oncehttp.ErrConfig), errors.Is(err, persist.ErrSealed): // some operations lack a setting or a key here, as was printed
		return nil
	case err != nil:
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: place.JournalError(ses.Place.Name, err)}
	}
	return w.refused(context.Cause(ctx))
}
