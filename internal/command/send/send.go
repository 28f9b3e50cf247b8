// Package send is oncehttp send: one operation.
package send

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
)

// sendFlags are the flags of send, as given.
type sendFlags struct {
	session.ClientFlags
	key         string
	accountSaid bool // --account was given, also if it is empty
	shape       session.KeyShape
	method      string
	data        []string
	user        string
	keep        []string
	drop        bool // the request, once it is done
	out         string
	include     bool
	json        bool
	silent      bool
}

// Command returns the command oncehttp send.
func Command(s terminal.Streams) *cobra.Command {
	f := &sendFlags{}
	cmd := &cobra.Command{
		Use:   "send [METHOD] URL",
		Short: "Send one operation, under one key",
		Long: `Send one operation and print its answer's body, as curl would. The method stands
before the URL or in -X; without either it is POST with data, else GET. --data
sends its text as it is, @FILE a file's bytes, @- those of stdin; several are
joined with "&". The Content-Type is application/json where the data is a JSON
object or array, else application/x-www-form-urlencoded, unless -H says
otherwise.

Without --key, and without a key in the request itself, a random one is made,
and printed as "key: K" on stderr before anything is sent; after a crash or an
unknown outcome, send the same again with --key K. An API that reads its keys in
the body or the query needs one there, or --insert-key, which puts it there as the
last member, and leaves all other bytes as they are. Without --journal (or
ONCEHTTP_JOURNAL) the journal is oncehttp/send.db in the user's state folder;
its path is printed on stderr. GET, HEAD and OPTIONS have no effect that could
happen twice: they are sent once, and not journaled.

Nothing is printed on stdout but this request's own final answer.

Exit status: 0 the server did it, or took it on with a 202 and may still fail,
which a line on stderr says; 1 it finally refused; 2 the call is wrong and nothing
was sent; 3 the outcome is unknown, or nothing was sent: the same command again,
with the same key, goes on, unless a line on stderr says that nothing more is sent.`,
		Example: `  oncehttp send POST https://api.example.com/payments -d '{"amount":100}' -H @auth.txt
  oncehttp send POST https://api.example.com/payments -d @payment.json \
      --key idemp:order:u1:o7 --journal payments.db -i`,
		Args: settings.WantArgs(1, 2, "METHOD and URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.accountSaid = cmd.Flags().Changed("account")
			if cmd.Flags().Changed("key") && f.key == "" {
				return errors.New("--key is empty")
			}
			if len(args) == 2 && f.method != "" {
				return fmt.Errorf("two methods, %s and -X %s; say one", words.Clip(args[0]), words.Clip(f.method))
			}
			return f.run(cmd.Context(), f.methodOf(args), args[len(args)-1], s)
		},
	}
	fs := cmd.Flags()
	f.Bind(fs)
	f.BindHonoured(fs)
	fs.StringArrayVarP(&f.data, "data", "d", nil, "the body: text, @FILE, or @- for stdin; several are joined with &")
	fs.StringVarP(&f.method, "request", "X", "", "the method, where it does not stand before the URL")
	fs.StringVarP(&f.user, "user", "u", "", "@FILE with one line user:password, for HTTP Basic")
	fs.StringVar(&f.key, "key", "", "the operation's idempotency key")
	f.shape.Bind(fs)
	fs.StringVar(&f.Journal, "journal", "", place.JournalUsage+" (default: ONCEHTTP_JOURNAL, else a file in the user's state folder)")
	place.BindSealKey(fs, &f.SealKey)
	fs.StringVarP(&f.out, "out", "o", "", "write the answer to this file instead of stdout")
	session.BindKeepFields(fs, &f.keep, "nothing")
	session.BindDropRequest(fs, &f.drop)
	fs.BoolVarP(&f.include, "include", "i", false, "print the status line and headers too")
	fs.BoolVarP(&f.silent, "silent", "s", false, "print nothing on stderr but errors")
	fs.BoolVar(&f.json, "json", false, "print one line of JSON, as batch does")
	return cmd
}

// methodOf returns the method named by the call, or suggested by its data.
func (f *sendFlags) methodOf(args []string) string {
	switch {
	case len(args) == 2:
		return args[0]
	case f.method != "":
		return f.method
	case len(f.data) > 0:
		return http.MethodPost
	}
	return http.MethodGet
}

// note prints a line for the person at the terminal, unless silenced.
func (f *sendFlags) note(s terminal.Streams, format string, args ...any) {
	if !f.silent {
		terminal.Say(s.Err, format, args...)
	}
}

// run checks the flags, opens the journal, and sends one request. Before that it writes the values of --declined to the journal (KeepDeclines), and refuses a
// request whose --account was forgotten (lacksAccount), and one that may have been sent under a profile by which the API knows its key, if this run's profile
// says that it does not (distrusts). The error has the exit status.
func (f *sendFlags) run(ctx context.Context, method, target string, s terminal.Streams) error {
	cfg, header, err := f.Config(s.Err)
	if err == nil {
		err = f.shapeKey(s)
	}
	if err != nil {
		return err
	}
	if f.silent {
		cfg.Logger = nil
	}
	cfg.KeepRequest = session.KeepRequest(f.drop)
	if cfg.KeepFields, err = session.ParseKeepFields(f.keep, nil); err != nil {
		return err
	}
	request, err := f.request(ctx, method, target, header, cfg.Profile, s)
	if err != nil {
		return err
	}
	cfg.Origins = []string{session.OriginOf(request().URL)}
	if err := terminal.CheckFolder(f.out); err != nil {
		return err
	}
	safe := f.key == "" && slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
	if !safe {
		cfg.Methods = []string{method} // a DELETE without a key gets one here too
	}
	if err := f.makeInserted(cfg, method, request(), s); err != nil {
		return err
	}
	ses, err := f.open(cfg, request(), safe, s)
	if err != nil {
		return err
	}
	stopClosing := context.AfterFunc(ctx, func() {
		f.note(s, "interrupted: waiting for the attempt on the wire; once more kills")
		ses.Stop()
	})
	defer stopClosing()
	if err := f.KeepDeclines(ctx, ses, func(text string) { f.note(s, "%s", text) }); err != nil {
		return errors.Join(err, ses.Close())
	}
	if err := f.lacksAccount(ctx, ses, cfg, request()); err != nil {
		return errors.Join(err, ses.Close())
	}
	if err := f.distrusts(ctx, ses, cfg, request(), s); err != nil {
		return errors.Join(err, ses.Close())
	}
	explain := func(err error) error { return explained(ctx, ses, cfg, request(), err) }
	return terminal.JoinExit(f.send(ctx, ses, request(), explain, s), ses.Close())
}

// request checks the method, the target and the data, and returns a function that makes the request anew at each call. It adds the credentials of --user and the type of
// the data to header. p is the profile of the API.
func (f *sendFlags) request(ctx context.Context, method, target string, header http.Header, p *profile.Profile, s terminal.Streams) (func() *http.Request, error) {
	if err := session.CheckMethod(method); err != nil {
		return nil, err
	}
	u, err := session.ParseTarget(target)
	if err != nil {
		return nil, err
	}
	if err := f.setUser(header); err != nil {
		return nil, err
	}
	body, err := f.body(s.In)
	if err != nil {
		return nil, err
	}
	if err := f.setType(header, body, p); err != nil {
		return nil, err
	}
	request := func() *http.Request { return session.NewRequest(ctx, method, u, header, body) }
	if err := session.CheckReferenced(request(), body, p); err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	return request, nil
}

// shapeKey replaces --key by the key that --key-uuid, --key-uuid4 or --key-short makes of it, and prints it. Without such a flag it does nothing.
func (f *sendFlags) shapeKey(s terminal.Streams) error {
	switch err := f.shape.Check(); {
	case err != nil || !f.shape.Set():
		return err
	case f.key == "":
		return errors.New("--key-uuid, --key-uuid4 and --key-short make a key of that of --key; say it")
	}
	f.key = string(f.shape.Of(oncehttp.Key(f.key)))
	f.note(s, "key: %s", f.key)
	return nil
}

// makeInserted makes a random key for --insert-key if neither --key nor the request has one. It leaves that to the client where the client makes keys itself
// (makesKey), and does nothing for a method without an effect.
func (f *sendFlags) makeInserted(cfg oncehttp.Config, method string, req *http.Request, s terminal.Streams) error {
	if f.key != "" || !cfg.InsertKey || makesKey(cfg.Profile, req) {
		return nil
	}
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions {
		return nil
	}
	probe, err := session.OpenUnjournaled(cfg)
	if err != nil {
		return err
	}
	if _, err := probe.Client.Prepare(req, ""); err != nil { // it has no key, or a fault reported with a key, too
		f.key = string(oncehttp.RandomKey())
		f.note(s, "key: %s", f.key)
	}
	return nil
}

// open checks the request and opens the journal. The check uses up the request's body. A safe request is not
// journaled, and open gives it a session without a journal.
func (f *sendFlags) open(cfg oncehttp.Config, req *http.Request, safe bool, s terminal.Streams) (*session.Session, error) {
	if safe {
		return session.OpenUnjournaled(cfg)
	}
	if err := f.check(cfg, req); err != nil {
		return nil, err
	}
	cfg.NewKey = func(*http.Request) (oncehttp.Key, error) {
		key := oncehttp.RandomKey()
		f.note(s, "key: %s", key)
		return key, nil
	}
	text, source := place.JournalText(f.Journal)
	if text == "" {
		var err error
		if text, err = place.SendJournal(); err != nil {
			return nil, err
		}
		f.note(s, "journal: %s", text)
	}
	at, err := place.ParseSealed(source, text, f.SealKey)
	if err != nil {
		return nil, err
	}
	if at.IsFile() && f.out != "" && terminal.SamePath(f.out, at.Path) {
		return nil, terminal.ErrSameFile(f.out, at.Name)
	}
	return session.OpenVisiting(at, cfg)
}

// check returns the client's reason for refusing the request, if any, before there is a journal. Where the client would make a key, it is asked with a random
// one.
func (f *sendFlags) check(cfg oncehttp.Config, req *http.Request) error {
	probe, err := session.OpenUnjournaled(cfg)
	if err != nil {
		return err
	}
	key := oncehttp.Key(f.key)
	if key == "" && makesKey(cfg.Profile, req) {
		key = oncehttp.RandomKey()
	}
	_, err = probe.Client.Prepare(req, key)
	return terminal.Plain(err)
}

// makesKey reports whether the client makes the key of a request without --key. It does if the request has no key
// in its header, or the API has no place for one. In a body, a form or a query there must be a key, or
// --insert-key puts one there.
func makesKey(p *profile.Profile, req *http.Request) bool {
	switch p.Carrier.Place {
	case profile.Header:
		return req.Header.Get(p.Carrier.Name) == ""
	case profile.Nowhere:
		return true
	}
	return false
}

// send sends the request, and prints its answer, once the end is durable in the journal (Flush). explain adds to its error what the journal knows.
// WithDeclines lets the client begin a further try of an operation refused by --declined, if the key is of such a try.
func (f *sendFlags) send(ctx context.Context, ses *session.Session, req *http.Request, explain func(error) error, s terminal.Streams) error {
	var resp *http.Response
	var err error
	if f.key == "" {
		resp, err = ses.Client.Do(req)
	} else {
		resp, err = ses.Client.DoKey(req.WithContext(f.WithDeclines(req.Context())), oncehttp.Key(f.key))
	}
	if err != nil {
		return f.failed(ctx, ses, explain(err), s)
	}
	defer resp.Body.Close()
	if err := ses.Flush(ctx); err != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: err}
	}
	out, closeOut, err := terminal.OpenOut(f.out, s.Out)
	if err != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: err}
	}
	var l results.Line
	if f.json {
		l = f.Declines.Answered(resp)
		_, err = out.Write(l.Marshal())
	} else {
		var kept head
		err = f.print(out, resp, &kept)
		l = f.Declines.AnsweredWith(resp, kept, err)
	}
	l.Unkept = f.Unkept() // the members of --drop-answer, for the advice about a doubt
	if err = errors.Join(err, closeOut()); err != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: fmt.Errorf("the answer could not be printed whole: %w", words.Pathless(err))}
	}
	if l.Result == results.Accepted && l.Key != "" {
		f.note(s, "accepted (%d): the server took it on, and it may still fail: ask it what came of it; nothing more is sent for it", l.Status)
	}
	if doubt := l.DoubtText(f.same(&l)); doubt != "" {
		f.note(s, "%s", doubt)
	}
	if l.Result == results.Unknown && l.Error != nil && !f.json {
		f.note(s, "%s; next: %s", l.Error.Message, f.nextStep(ctx, ses, &l))
	}
	return terminal.ExitWith(l.Exit)
}

// failed prints nothing on stdout: only this request's own final answer belongs there. With --json it prints the line with the reason. Else the error's text
// ends with the next step. The counts of a call (before) become those of the operation's whole life, by the journal. begun is the profile of the recorded
// operation: by it a person may teach the command the meaning of the answer (Lesson). A recorded success in which a refusal may be hidden becomes unknown
// (Unseen).
func (f *sendFlags) failed(ctx context.Context, ses *session.Session, err error, s terminal.Streams) error {
	status := results.StatusOfError(err)
	if e := (*oncehttp.Error)(nil); errors.As(err, &e) && e.Sends == 0 && errors.Is(err, oncehttp.ErrConfig) {
		status = terminal.ExitUsage
	}
	l := results.Failed("", err)
	before := l.Attempts
	begun := f.recall(ctx, ses, &l)
	err = results.OfWholeLife(err, before, &l)
	if text := session.Lesson(f.Used, err, begun); text != "" {
		err = fmt.Errorf("%w; %s", err, text)
		if l.Error != nil {
			l.Error.Message += "; " + text
		}
	}
	if f.Declines.Unseen(&l); l.Result == results.Unknown && status == terminal.ExitOK {
		status = l.Exit
		err = fmt.Errorf("%w; %s", err, l.Why())
	}
	if f.json {
		if _, werr := s.Out.Write(l.Marshal()); werr != nil {
			err = errors.Join(err, werr)
		}
	} else if step := f.nextStep(ctx, ses, &l); step != "" && !f.silent {
		err = fmt.Errorf("%w; next: %s", err, step)
	}
	if doubt := l.DoubtText(f.same(&l)); doubt != "" {
		f.note(s, "%s", doubt)
	}
	return &terminal.ExitError{Status: status, Err: err}
}
