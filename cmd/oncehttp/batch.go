package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
)

// batchFlags are the flags of batch, as given.
type batchFlags struct {
	clientFlags
	url        string
	key        string
	method     string
	numbers    []string
	workers    int
	rate       float64
	generation int
	out        string
}

const (
	workersMax = 1024
	rateMax    = 1e6
)

func batchCommand(s streams) *cobra.Command {
	f := &batchFlags{}
	cmd := &cobra.Command{
		Use:   "batch FILE --url URL --key TEMPLATE",
		Short: "Send one operation for each row of a file, each exactly once",
		Long: `Send one operation for each row of FILE: CSV with a header row, or NDJSON (one
JSON object a line); "-" is stdin. An NDJSON line is sent byte for byte. A CSV
row is sent as a JSON object of strings; --number makes numbers of columns.

--key spells each row's idempotency key: {field} stands for a field's value, and
the text before the first one is the scope. Every row is checked before anything
is sent. Two rows with one key and the same content are one operation; with
other content they are an error.

Each operation is in the journal, on disk, before its first byte leaves. Running
the same command again, also after a crash, finishes what is pending, sends
nothing that is confirmed, and prints the recorded answers.

A line of JSON is printed for each row once its answer is durable: in the order
of the rows, except that rows which take long come later. Its "result" says what
came of the row for the business (oncehttp help results); a declined card is
"declined" there, whatever its status. The body is shown up to 1 MiB. The first
Ctrl-C ends after the attempts on the wire, the second kills (which loses
nothing either).

Exit status: 0 all is done; 1 some rows were declined, invalid, rejected or
mismatched; 2 the call or the input is wrong and nothing was sent; 3 something
is unknown, held or still to do. The summary names the next step for each.`,
		Example: `  oncehttp batch orders.csv --url https://api.example.com/payments \
      --key 'order:{user}:{order_id}' --number amount -H @auth.txt
  oncehttp batch - --url http://127.0.0.1:8080/payments --key 'evt:{id}' \
      --journal events.db < events.ndjson`,
		Args: wantArgs(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0], s) },
	}
	fs := cmd.Flags()
	f.bind(fs)
	fs.StringVar(&f.url, "url", "", "where each row is sent")
	fs.StringVar(&f.key, "key", "", "spells each row's key, such as 'order:{user}:{order_id}'")
	fs.StringVar(&f.journal, "journal", "", "the journal's file (default: FILE.oncehttp.db)")
	fs.StringVar(&f.method, "method", http.MethodPost, "the method")
	fs.StringSliceVar(&f.numbers, "number", nil, "CSV columns that are JSON numbers, separated by commas")
	fs.IntVar(&f.workers, "workers", 8, "operations at once")
	fs.Float64Var(&f.rate, "rate", 0, "operations started a second, those left out that the journal answers; further attempts do not count (0: no limit)")
	fs.IntVar(&f.generation, "generation", 1, "the how-many-th try this is: tries anew only rows whose try before is a confirmed 4xx or settled as absent")
	fs.StringVar(&f.out, "out", "", "write the lines here instead of stdout")
	return cmd
}

// run goes from checks that touch nothing to the first send, in this order, so
// that whatever is wrong is found before anything is created.
func (f *batchFlags) run(ctx context.Context, file string, s streams) error {
	p, cfg, err := f.plan(s.err)
	if err != nil {
		return err
	}
	if f.journal == "" {
		if f.journal, err = defaultJournal(file); err != nil {
			return err
		}
	}
	if err := checkJournalPath(f.journal, true); err != nil {
		return err
	}
	in, err := openInput(file, s.in, filepath.Dir(f.journal))
	if err != nil {
		return err
	}
	defer in.close()
	sv, err := surveyRows(ctx, in, p, cfg)
	if err != nil {
		return err
	}
	if err := f.checkOut(file); err != nil {
		return err
	}
	ses, err := openSession(f.journal, cfg, true)
	if err != nil {
		return err
	}
	out, closeOut, err := openOut(f.out, s.out)
	if err != nil {
		return errors.Join(err, ses.close())
	}
	say(s.err, "journal: %s", f.journal)
	b := &batch{
		flags: f, plan: p, survey: sv, in: in, session: ses, stderr: s.err,
		bar: newProgress(s.err, out, sv.rows, in.name),
	}
	err = b.run(ctx, out)
	if cerr := closeOut(); err == nil && cerr != nil {
		err = &exitError{status: exitUnknown, err: cerr}
	}
	return joinExit(err, ses.close())
}

// plan checks the flags.
func (f *batchFlags) plan(stderr io.Writer) (*plan, oncehttp.Config, error) {
	fail := func(err error) (*plan, oncehttp.Config, error) { return nil, oncehttp.Config{}, err }
	cfg, header, err := f.config(stderr)
	if err != nil {
		return fail(err)
	}
	if f.url == "" {
		return fail(errors.New("--url is required"))
	}
	target, err := parseTarget(f.url)
	if err != nil {
		return fail(fmt.Errorf("--url: %w", err))
	}
	if err := checkMethod(f.method); err != nil {
		return fail(fmt.Errorf("--method: %w", err))
	}
	t, err := parseKeyTemplate(f.key)
	switch {
	case err != nil:
		return fail(fmt.Errorf("--key %w", err))
	case f.workers < 1 || f.workers > workersMax:
		return fail(fmt.Errorf("--workers must be from 1 to %d", workersMax))
	case !(f.rate >= 0 && f.rate <= rateMax):
		return fail(fmt.Errorf("--rate must be from 0 to %d", int(rateMax)))
	case f.generation < 1:
		return fail(errors.New("--generation must be at least 1"))
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	needs := rowNeeds{fields: t.fields, numbers: f.numbers}
	return &plan{method: f.method, target: target, header: header, key: t, needs: needs, generation: f.generation}, cfg, nil
}

func defaultJournal(file string) (string, error) {
	if file == "-" {
		return "", errors.New("stdin has no name to put a journal beside; --journal is required")
	}
	if info, err := os.Stat(file); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return "", &inputError{file: file, err: errors.New("is not a regular file to put a journal beside; --journal is required")}
	}
	return file + ".oncehttp.db", nil
}

// checkOut refuses to write the answers over the input or the journal.
func (f *batchFlags) checkOut(file string) error {
	if f.out == "" {
		return nil
	}
	for _, other := range []string{file, f.journal} {
		if samePath(f.out, other) {
			return errSameFile(f.out, other)
		}
	}
	return checkFolder(f.out)
}
