// Package batch is oncehttp batch: one operation for each row of a file.
package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// batchFlags are the flags of batch, as given.
type batchFlags struct {
	session.ClientFlags
	url      string
	key      string
	shape    session.KeyShape
	method   string
	numbers  []string
	body     string
	template bool // --body was given
	form     bool
	formSaid bool // --form was given
	// profileSaid: --profile was given, so that it was not forgotten.
	profileSaid bool
	orderSaid   bool // --ordered-by was given
	workers     int
	rate        float64
	generation  int
	sums        batchSums
	outs        outFlags
	out         string
	delimiter   string
	orderedBy   string
	keepFields  []string
	drop        bool // the request, once it is done
	maxErrors   int
	failFast    bool
	dry         bool
	quiet       bool
	strict      bool
	newJournal  bool
	ownJournal  bool // the default one, beside the file
	otherServer bool
	yes         bool // rows that were done before they were declined are meant
}

// spareHeap is the size of a block of memory never touched, and so never taken from the system. The garbage
// collector waits until the heap has doubled. With the block in the heap it runs after spareHeap bytes at least.
// Without it, it runs after every 4 MB, and costs a batch a tenth of its processor time.
const spareHeap = 32 << 20

const rateMax = 1e6

// Command returns the command oncehttp batch.
func Command(s terminal.Streams) *cobra.Command {
	f := &batchFlags{}
	cmd := &cobra.Command{
		Use:     "batch FILE --url URL --key TEMPLATE",
		Short:   "Send one operation for each row of a file, and each once",
		Long:    batchHelp,
		Example: batchExamples,
		Args:    settings.WantArgs(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.template, f.formSaid, f.profileSaid = cmd.Flags().Changed("body"), cmd.Flags().Changed("form"), settings.IsInCall(cmd.Flags(), "profile")
			f.orderSaid = cmd.Flags().Changed("ordered-by")
			return f.run(cmd.Context(), args[0], s)
		},
	}
	f.bindBatch(cmd.Flags())
	return cmd
}

// bindBatch binds the flags of batch.
func (f *batchFlags) bindBatch(fs *pflag.FlagSet) {
	f.Bind(fs)
	f.BindHonoured(fs)
	fs.StringVar(&f.url, "url", "", "where each row is sent; {field} in the path or query stands for a row's value")
	fs.StringVar(&f.key, "key", "", "spells each row's key, such as 'order:{user}:{order_id}'")
	f.shape.Bind(fs)
	fs.StringVar(&f.Journal, "journal", "", place.JournalUsage+" (default: FILE.oncehttp.db)")
	place.BindSealKey(fs, &f.SealKey)
	fs.StringVar(&f.method, "method", http.MethodPost, "the method")
	fs.StringSliceVar(&f.numbers, "number", nil, "CSV columns that are JSON numbers, separated by commas")
	fs.StringVar(&f.body, "body", "", `the JSON body of a CSV row, or @FILE: "{column}" in JSON strings, {column:number}, {column:minor} or {column:bool} for values`)
	fs.BoolVar(&f.form, "form", false, "send rows as application/x-www-form-urlencoded (default: as the profile says)")
	fs.IntVar(&f.workers, "workers", 8, "requests at once")
	fs.Float64Var(&f.rate, "rate", 0, "operations started a second, those left out that the journal answers; further attempts do not count (0: no limit)")
	fs.IntVar(&f.generation, "generation", 1, "which try of the rows this is: 2 sends, under new keys, those whose first try was refused for certain (a final 4xx, settled as absent, or an answer that --declined names), and no other; 3 those whose second was")
	fs.BoolVar(&f.yes, "yes", false, "with --generation: send rows, too, that an earlier run told as done before a --declined made a decline of their answer; with an API without keys: send what is new to a restored journal")
	fs.StringVar(&f.delimiter, "delimiter", "", "what parts the columns of a CSV file, one character or TAB (default: a comma, or what its header has instead: tabs or semicolons)")
	fs.StringVar(&f.orderedBy, "ordered-by", "", "a column or member: rows with the same value are sent one after the other, in their order, and none once one of them has not ended")
	fs.IntVar(&f.maxErrors, "max-errors", 20, "stop after so many rows, tried in a row, that failed alike; a declined row is an answer, and no failure (0: never, nor after 20 whose keys stand for other requests)")
	fs.BoolVar(&f.failFast, "fail-fast", false, "the same as --max-errors 1")
	session.BindKeepFields(fs, &f.keepFields, "the key's fields, those of --sum and --currency, /reference, /amount and /currency; none: nothing")
	session.BindDropRequest(fs, &f.drop)
	f.sums.bind(fs)
	fs.BoolVar(&f.dry, "dry-run", false, "check everything, print the first requests that would be sent, say how all rows stand in the journal, and send nothing; status 1 if rows have changed, 2 where a run would be refused, as for a copy")
	fs.BoolVar(&f.strict, "strict", false, "refuse a file that is warned about: a row that may be a total, an amount that is negative, zero or written as 1e3, or has more decimals than its currency, a key with blanks at its edges, characters that nobody sees or letters of two alphabets, keys that differ only in capitals, blanks, dashes (none between two digits) or characters that Unicode takes for one, rows that differ only in the amount, new rows where others have left the file, a journal beside it that cannot be read")
	fs.BoolVar(&f.otherServer, "other-server", false, "do not ask before a file is sent to a server to which none of the rows went that its own journal knows")
	fs.BoolVar(&f.newJournal, "new-journal", false, "do not ask before a file gets a journal of its own whose rows or keys stand in another one beside it, nor where not all of these were looked at, nor where its own was moved or deleted during a run, nor before rows begun under other keys are sent under these")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no summary")
	fs.StringVar(&f.out, "out", "", "write the lines here instead of stdout")
	f.outs.bind(fs)
}

// run does the command batch for one input file: it checks the flags, reads all rows once (surveyRows), compares them with the journals, and only then sends. In
// this order every fault of the input is found before a file is created or a request is sent. Each of the five checks, checkLost and those after it, may refuse the run or
// ask the user: rows may have been sent before, or elsewhere. b.started lets other batches on files of the same folder go on with their checks.
func (f *batchFlags) run(ctx context.Context, file string, s terminal.Streams) error {
	defer runtime.KeepAlive(make([]byte, spareHeap)) // a large heap, so that the garbage collector runs less often
	errs := &lateWriter{s.Err}                       // gets a writer beside the progress line below
	p, cfg, err := f.plan(errs)
	if err != nil {
		return err
	}
	at, err := f.place(file, errs)
	if err != nil {
		return err
	}
	in, err := input.Open(file, s.In, at.Folder())
	if err != nil {
		return err
	}
	defer in.Close()
	if err := f.checkOut(file, at); err != nil {
		return err
	}
	if err := f.checkKept(in, p, s); err != nil {
		return err
	}
	if !f.quiet {
		for _, note := range in.Notes(p.needs.Delimiter) {
			terminal.Say(s.Err, "%s", note)
		}
	}
	bar := newProgress(s.Err, in.Name, f.quiet)
	errs.Writer = bar.beside(s.Err)
	s.Err = errs
	p.watchesLeft = f.asksLeft(p, at) // for checkLeft: operations that are not in the file any more
	sv, err := surveyRows(ctx, in, p, cfg, at.Folder(), bar.checked)
	if err != nil || f.dry {
		bar.finish()
	}
	if err != nil {
		return unsent(ctx, err)
	}
	defer sv.close()
	f.sums.sayUnread(&p.needs, sv.suspects.local, f.quiet, errs)
	if err := cmp.Or(f.sums.check(in.Name, sv), sv.suspects.tell(in.Name, f.strict, s.Err)); err != nil {
		bar.finish()
		return err
	}
	b := &batch{flags: f, plan: p, survey: sv, in: in, streams: s, bar: bar, tally: results.Tally{Parted: true}} // Parted: pending rows are called so, and not unknown
	b.rejected = sync.OnceValue(b.readRejected)
	b.started = b.lockFolders(ctx)
	defer b.started()
	for _, check := range []func(context.Context, *batch, place.Place) error{f.checkLost, f.checkOrigin, f.checkCopy, f.checkOtherKeys, f.checkLeft} {
		if err := check(ctx, b, at); err != nil {
			bar.finish()
			return unsent(ctx, err)
		}
	}
	if f.dry {
		return f.dryRun(ctx, b, at, cfg)
	}
	bar.sending(sv.rows)
	return f.send(ctx, at, b, cfg)
}

// unsent returns the error of a check before the first send. After a signal it says that nothing was sent, unless err does (ErrUnanswered: the signal ended a
// question).
func unsent(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, terminal.ErrUnanswered) {
		return err
	}
	return &terminal.ExitError{Status: terminal.ExitUnknown, Err: errors.New("interrupted before anything was sent")}
}

// place returns the location of the journal: that of --journal, or the default one beside the input file. It is called before the input is opened. The error says that
// no journal can be there, or, for the default journal, that the input file is missing.
func (f *batchFlags) place(file string, errs io.Writer) (at place.Place, err error) {
	if f.Journal == "" {
		if os.Getenv("ONCEHTTP_JOURNAL") != "" {
			terminal.Say(errs, "ONCEHTTP_JOURNAL is set, and batch does not use it: a file has a journal of its own, or that of --journal")
		}
		if f.Journal, err = defaultJournal(file); err != nil {
			return at, err
		}
		f.ownJournal = true
	}
	at, err = place.ParseSealed(place.FromFlag, f.Journal, f.SealKey)
	if err == nil && at.IsFile() {
		err = place.CheckJournalPath(at.Path, true) // true: the run makes it, if it is missing
	}
	if _, missing := os.Stat(file); err != nil && f.ownJournal && missing != nil { // the file is the mistake, not the journal beside it
		err = &input.RowError{File: file, Err: words.Pathless(missing)}
	}
	return at, err
}

// send opens the journal and the output, and sends the rows. It is the last step of run, after all checks of the input. The error has the exit status of the command.
// It still returns before the first send if the journal forbids this run, as after a restore from a backup.
func (f *batchFlags) send(ctx context.Context, at place.Place, b *batch, cfg oncehttp.Config) error {
	defer b.bar.finish()
	b.observe(&cfg) // before the client is made of cfg: the batch sees its attempts
	ses, err := session.CreateSession(at, cfg)
	if err != nil {
		return err
	}
	b.session = ses
	if b.sender, err = session.SenderOf(ctx, ses, cfg); err != nil {
		return errors.Join(err, ses.Close())
	}
	if err := f.asBefore(ctx, ses, b.survey.origin, cfg.Profile); err != nil { // a flag of earlier runs was forgotten
		return errors.Join(err, ses.Close())
	}
	b.noted = sync.OnceFunc(func() { b.keepNote(context.WithoutCancel(ctx), cfg.Profile) })
	if f.orderSaid && f.orderedBy == "" {
		b.noted() // at once: it takes an order back on purpose, and may have no new row
	}
	// It keeps the values of --declined in the journal, and takes over those of earlier runs.
	if err := f.KeepDeclines(ctx, ses, func(text string) { b.note("%s", text) }); err != nil {
		return errors.Join(err, ses.Close())
	}
	if err := b.sayRestored(ctx); err != nil {
		return errors.Join(err, ses.Close())
	}
	if b.unprotectedRestore() {
		return errors.Join(errRestoredUnprotected, ses.Close())
	}
	out, closeOut, err := f.openLines(b.streams.Out)
	if err != nil {
		return errors.Join(err, ses.Close())
	}
	if terminal.IsTerminal(out) {
		out = b.bar.beside(out)
	}
	b.note("journal: %s", at.Name)
	b.sayNotNoted(b.noteJournal(at))
	if b.unfinished, err = b.anyUnfinished(ctx); err != nil {
		err = place.JournalError(at.Name, err)
	} else {
		err = b.run(ctx, out)
	}
	if cerr := closeOut(); err == nil && cerr != nil {
		err = &terminal.ExitError{Status: terminal.ExitUnknown, Err: cerr}
	}
	return terminal.JoinExit(err, ses.Close())
}

// plan checks the flags, and returns the plan, by which each row becomes a request, and the client's configuration. It opens no input and no journal. Warnings go to
// stderr.
func (f *batchFlags) plan(stderr io.Writer) (*plan, oncehttp.Config, error) {
	fail := func(err error) (*plan, oncehttp.Config, error) { return nil, oncehttp.Config{}, err }
	cfg, header, err := f.Config(stderr)
	if err != nil {
		return fail(err)
	}
	if f.url == "" {
		return fail(errors.New("--url is required"))
	}
	if err := session.CheckMethod(f.method); err != nil {
		return fail(fmt.Errorf("--method: %w", err))
	}
	if err := f.shape.Check(); err != nil {
		return fail(err)
	}
	t, err := keyTemplateFor(f.key, f.shape, cfg.Profile)
	if err != nil {
		return fail(fmt.Errorf("--key %w", err))
	}
	cfg.KeepRequest = session.KeepRequest(f.drop)
	if cfg.KeepFields, err = f.keptFields(t.fields); err != nil {
		return fail(err)
	}
	// needs is what the reader of rows has to take from each. The fields of the key come first (OfKey is their number); what follows adds those of other flags.
	needs := input.RowNeeds{Fields: t.fields, OfKey: len(t.fields), Numbers: f.numbers}
	target, err := parseURLTemplate(f.url, &needs)
	if err != nil {
		return fail(fmt.Errorf("--url: %w", err))
	}
	cfg.Origins = []string{target.origin(len(needs.Fields))}
	if err := f.checkNumbers(); err != nil {
		return fail(err)
	}
	if needs.Delimiter, err = input.ParseDelimiter(f.delimiter); err != nil {
		return fail(err)
	}
	p := &plan{method: f.method, target: target, header: header, profile: cfg.Profile, key: t, generation: f.generation, orderedBy: -1} // -1: no field
	if f.orderedBy != "" {
		p.orderedBy = needs.Index(f.orderedBy, "--ordered-by")
	}
	if err := f.setBody(&needs, header, cfg.Profile); err != nil {
		return fail(err)
	}
	sayDoubled(&needs, stderr)
	if err := f.sums.set(p, &needs); err != nil {
		return fail(err)
	}
	needs.CSVFault = f.sums.checkDecimal(&needs) // an error only if the input is CSV
	p.needs, p.look = needs, f.look(t.fields)
	return p, cfg, nil
}

// look returns the likely mistakes that the first reading of the input looks for, such as a row with a total. keyFields are the columns of the key. Without a currency
// column in --sum, the usual one is read: amounts of several currencies must not be added up. If the amount is part of the key, two rows that differ in the amount
// alone are looked for (look.Apart, the amount's column): they are probably one payment.
func (f *batchFlags) look(keyFields []string) input.Look {
	amount := cmp.Or(f.sums.column, "amount")
	look := input.Look{Totals: true, Amount: strings.TrimPrefix(amount, "/")}
	if f.sums.currency == "" {
		look.Currency = "currency"
	}
	if slices.Contains(keyFields, amount) {
		look.Apart = strings.TrimPrefix(amount, "/")
	}
	return look
}

// checkNumbers returns an error if a numeric flag is out of its range. It also sets f.maxErrors to 1 for --fail-fast.
func (f *batchFlags) checkNumbers() error {
	switch {
	case f.workers < 1 || f.workers > session.WorkersMax:
		return fmt.Errorf("--workers must be from 1 to %d", session.WorkersMax)
	case !(f.rate >= 0 && f.rate <= rateMax): // true for NaN, too
		return fmt.Errorf("--rate must be from 0 to %d", int(rateMax))
	case f.generation < 1:
		return errors.New("--generation must be at least 1")
	case f.maxErrors < 0:
		return errors.New("--max-errors must not be negative")
	}
	if f.failFast {
		f.maxErrors = 1
	}
	return nil
}

// defaultJournal returns the path of the journal beside an input file. Stdin ("-") and files that are not regular have none: this is an error.
func defaultJournal(file string) (string, error) {
	if file == "-" {
		return "", errors.New("stdin has no name to put a journal beside; --journal is required")
	}
	// A missing file and a folder are met when the input is opened.
	if info, err := os.Stat(file); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return "", &input.RowError{File: file, Err: errors.New("is not a regular file to put a journal beside; --journal is required")}
	}
	return file + journalSuffix, nil
}

// checkOut returns an error if the file of --out is the input or the journal, which it would overwrite, or if the folder of that file is missing.
func (f *batchFlags) checkOut(file string, at place.Place) error {
	if f.out == "" {
		return nil
	}
	for _, other := range []string{file, at.Path} {
		if other != "" && terminal.SamePath(f.out, other) { // "": the journal is on a server
			return terminal.ErrSameFile(f.out, other)
		}
	}
	return terminal.CheckFolder(f.out)
}
