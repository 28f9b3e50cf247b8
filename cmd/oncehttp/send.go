package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/profile"
)

// sendFlags are the flags of send, as given.
type sendFlags struct {
	clientFlags
	key     string
	shape   keyShape
	method  string
	data    []string
	user    string
	keep    []string
	out     string
	include bool
	json    bool
	silent  bool
}

func sendCommand(s streams) *cobra.Command {
	f := &sendFlags{}
	cmd := &cobra.Command{
		Use:   "send [METHOD] URL",
		Short: "Send one operation, exactly once",
		Long: `Send one operation and print its answer's body, as curl would. The method stands
before the URL or in -X; without either it is POST with data, else GET. --data
sends its text as it is, @FILE a file's bytes, @- those of stdin; several are
joined with "&". The Content-Type is application/json where the data is a JSON
object or array, else application/x-www-form-urlencoded, unless -H says
otherwise.

Without --key, and without a key in the request itself, a random one is made,
and printed as "key: K" on stderr before anything is sent; after a crash or an
unknown outcome, send the same again with --key K. An API that reads its keys in
the body or the query needs one there: none is put in. Without --journal (or
ONCEHTTP_JOURNAL) the journal is oncehttp/send.db in the user's state folder;
its path is printed on stderr. GET, HEAD and OPTIONS have no effect that could
happen twice: they are sent once, and not journaled.

Nothing is printed on stdout but this request's own final answer.

Exit status: 0 the server did it; 1 it finally refused; 2 the call is wrong and
nothing was sent; 3 the outcome is unknown, or nothing was sent: the same
command again, with the same key, goes on.`,
		Example: `  oncehttp send POST https://api.example.com/payments -d '{"amount":100}' -H @auth.txt
  oncehttp send POST https://api.example.com/payments -d @payment.json \
      --key idemp:order:u1:o7 --journal payments.db -i`,
		Args: wantArgs(1, 2, "METHOD and URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("key") && f.key == "" {
				return errors.New("--key is empty")
			}
			if len(args) == 2 && f.method != "" {
				return fmt.Errorf("two methods, %s and -X %s; say one", clip(args[0]), clip(f.method))
			}
			return f.run(cmd.Context(), f.methodOf(args), args[len(args)-1], s)
		},
	}
	fs := cmd.Flags()
	f.bind(fs)
	f.bindHonoured(fs)
	fs.StringArrayVarP(&f.data, "data", "d", nil, "the body: text, @FILE, or @- for stdin; several are joined with &")
	fs.StringVarP(&f.method, "request", "X", "", "the method, where it does not stand before the URL")
	fs.StringVarP(&f.user, "user", "u", "", "@FILE with one line user:password, for HTTP Basic")
	fs.StringVar(&f.key, "key", "", "the operation's idempotency key")
	f.shape.bind(fs)
	fs.StringVar(&f.journal, "journal", "", journalUsage+" (default: ONCEHTTP_JOURNAL, else a file in the user's state folder)")
	bindSealKey(fs, &f.sealKey)
	fs.StringVarP(&f.out, "out", "o", "", "write the answer to this file instead of stdout")
	bindKeepFields(fs, &f.keep, "nothing")
	fs.BoolVarP(&f.include, "include", "i", false, "print the status line and headers too")
	fs.BoolVarP(&f.silent, "silent", "s", false, "print nothing on stderr but errors")
	fs.BoolVar(&f.json, "json", false, "print one line of JSON, as batch does")
	return cmd
}

// methodOf is the method that the call names, or that its data suggest.
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

// note prints what a person at the terminal may want to know, unless silenced.
func (f *sendFlags) note(s streams, format string, args ...any) {
	if !f.silent {
		say(s.err, format, args...)
	}
}

func (f *sendFlags) run(ctx context.Context, method, target string, s streams) error {
	cfg, header, err := f.config(s.err)
	if err == nil {
		err = f.shapeKey(s)
	}
	if err != nil {
		return err
	}
	if f.silent {
		cfg.Logger = nil
	}
	if cfg.KeepFields, err = parseKeepFields(f.keep, nil); err != nil {
		return err
	}
	if err := checkMethod(method); err != nil {
		return err
	}
	u, err := parseTarget(target)
	if err != nil {
		return err
	}
	cfg.Origins = []string{originOf(u)}
	if err := f.setUser(header); err != nil {
		return err
	}
	body, err := f.body(s.in)
	if err != nil {
		return err
	}
	if err := f.setType(header, body, cfg.Profile); err != nil {
		return err
	}
	if err := checkReferenced(newRequest(ctx, method, u, header, body), body, cfg.Profile); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	if err := checkFolder(f.out); err != nil {
		return err
	}
	request := func() *http.Request { return newRequest(ctx, method, u, header, body) }
	safe := f.key == "" && slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
	if !safe {
		cfg.Methods = []string{method} // a DELETE without a key gets one here too
	}
	ses, err := f.open(cfg, request(), safe, s)
	if err != nil {
		return err
	}
	stopClosing := context.AfterFunc(ctx, func() {
		f.note(s, "interrupted: waiting for the attempt on the wire; once more kills")
		_ = ses.client.Close() // said again by ses.close
	})
	defer stopClosing()
	return joinExit(f.send(ctx, ses, request(), s), ses.close())
}

// shapeKey makes of --key the key that is used, and tells it.
func (f *sendFlags) shapeKey(s streams) error {
	switch err := f.shape.check(); {
	case err != nil || !f.shape.set():
		return err
	case f.key == "":
		return errors.New("--key-uuid, --key-uuid4 and --key-short make a key of that of --key; say it")
	}
	f.key = string(f.shape.of(oncehttp.Key(f.key)))
	f.note(s, "key: %s", f.key)
	return nil
}

// open checks the request, whose body it uses up, and opens the journal, which a
// request that is not journaled does without.
func (f *sendFlags) open(cfg oncehttp.Config, req *http.Request, safe bool, s streams) (*session, error) {
	if safe {
		return openUnjournaled(cfg)
	}
	if err := f.check(cfg, req); err != nil {
		return nil, err
	}
	cfg.NewKey = func(*http.Request) (oncehttp.Key, error) {
		key := oncehttp.RandomKey()
		f.note(s, "key: %s", key)
		return key, nil
	}
	text, source := journalText(f.journal)
	if text == "" {
		var err error
		if text, err = sendJournal(); err != nil {
			return nil, err
		}
		f.note(s, "journal: %s", text)
	}
	at, err := parseSealedPlace(source, text, f.sealKey)
	if err != nil {
		return nil, err
	}
	return openVisiting(at, cfg)
}

// check asks the client whether it takes the request, before there is a journal.
func (f *sendFlags) check(cfg oncehttp.Config, req *http.Request) error {
	probe, err := openUnjournaled(cfg)
	if err != nil {
		return err
	}
	key := oncehttp.Key(f.key)
	if key == "" && makesKey(cfg.Profile, req) {
		key = oncehttp.RandomKey()
	}
	_, err = probe.client.Prepare(req, key)
	return plain(err)
}

// makesKey reports whether the client makes the key of a request for which --key names none: the request has none in its
// header. In a body, a form or a query no key is inserted, so that one has to be there.
func makesKey(p *profile.Profile, req *http.Request) bool {
	switch p.Carrier.Place {
	case profile.Header:
		return req.Header.Get(p.Carrier.Name) == ""
	case profile.Nowhere:
		return true
	}
	return false
}

func (f *sendFlags) send(ctx context.Context, ses *session, req *http.Request, s streams) error {
	var resp *http.Response
	var err error
	if f.key == "" {
		resp, err = ses.client.Do(req)
	} else {
		resp, err = ses.client.DoKey(req, oncehttp.Key(f.key))
	}
	if err != nil {
		return f.failed(err, s)
	}
	defer resp.Body.Close()
	if err := ses.flush(ctx); err != nil {
		return &exitError{status: exitUnknown, err: err}
	}
	out, closeOut, err := openOut(f.out, s.out)
	if err != nil {
		return &exitError{status: exitUnknown, err: err}
	}
	var status int
	if f.json {
		l := f.declines.answered(resp)
		status = l.exit
		_, err = out.Write(l.marshal())
	} else {
		var kept head
		err = f.print(out, resp, &kept)
		how := oncehttp.ResultOf(resp)
		status = f.declines.resultOfAnswer(resp.StatusCode, textOf(resp.Header, kept.bytes), how.AlreadyDone, how.Outcome == oncehttp.OutcomeRefused).exit()
	}
	if err = errors.Join(err, closeOut()); err != nil {
		return &exitError{status: exitUnknown, err: fmt.Errorf("the answer could not be printed whole: %w", pathless(err))}
	}
	return exitWith(status)
}

// head keeps what was written to it, up to answerBytesMax.
type head struct{ bytes []byte }

// Write keeps what fits. It never fails.
func (h *head) Write(p []byte) (int, error) {
	h.bytes = append(h.bytes, p[:min(len(p), answerBytesMax-len(h.bytes))]...)
	return len(p), nil
}

// print streams the answer, and its body to kept too.
func (f *sendFlags) print(w io.Writer, resp *http.Response, kept io.Writer) error {
	if f.include {
		if _, err := fmt.Fprintf(w, "%s %s\r\n", resp.Proto, resp.Status); err != nil {
			return err
		}
		if err := resp.Header.Write(w); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\r\n"); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.MultiWriter(w, kept), resp.Body)
	return err
}

// failed prints nothing on stdout, where only this request's own final answer
// belongs. With --json it prints the line that says why.
func (f *sendFlags) failed(err error, s streams) error {
	status := statusOfError(err)
	if e := (*oncehttp.Error)(nil); errors.As(err, &e) && e.Sends == 0 && errors.Is(err, oncehttp.ErrConfig) {
		status = exitUsage
	}
	err = taught(f.used, err)
	if f.json {
		l := failed("", err)
		if _, werr := s.out.Write(l.marshal()); werr != nil {
			err = errors.Join(err, werr)
		}
	}
	return &exitError{status: status, err: err}
}
