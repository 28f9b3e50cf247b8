// Package audit is oncehttp audit: it compares a journal with the provider's own export.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// auditFlags are the flags of audit, as given.
type auditFlags struct {
	session.JournalFlags
	against   []string
	match     string
	reference string
	amount    string
	amountCol string
	units     units
	currency  string
	where     []string
	allRows   bool
	delimiter string
	comma     rune // of delimiter; 0: found in the file
	decimal   string
	typeCol   string
	timeCol   string
	since     string
	until     string
	edge      time.Duration
	declined  []string
	keys      session.KeyPatterns
	json      bool

	ourCurrency string
	hasCurrency bool // --currency is given, maybe as an empty text
}

// Command returns the command oncehttp audit.
func Command(s terminal.Streams) *cobra.Command {
	f := &auditFlags{}
	cmd := &cobra.Command{
		Use:     "audit [KEY]... --journal FILE --against EXPORT --match COLUMN",
		Short:   "Hold a journal against what the provider says it did",
		Long:    longHelp,
		Example: examples,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.keys = args
			f.hasCurrency = cmd.Flags().Changed("currency")
			f.HasAccount = cmd.Flags().Changed("account")
			return f.run(cmd.Context(), s)
		},
	}
	f.bind(cmd.Flags())
	return cmd
}

// bind adds the flags of the command audit to fs.
func (f *auditFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.Journal, "journal", "", place.JournalUsage+" (or ONCEHTTP_JOURNAL)")
	place.BindSealKey(fs, &f.SealKey)
	fs.StringVar(&f.Account, "account", "", "only operations of this account (default: all)")
	fs.StringArrayVar(&f.against, "against", nil, "an export, CSV or NDJSON; may be repeated")
	fs.StringVar(&f.match, "match", "", "the export's column with the key, or with the reference")
	fs.StringVar(&f.reference, "reference", "", "JSON pointer to the reference in our requests (default: the key is matched)")
	fs.StringVar(&f.amount, "amount", "", "JSON pointer to the amount in our requests")
	fs.StringVar(&f.amountCol, "amount-column", "amount", "the export's column with the amount")
	fs.StringVar(&f.units.theirs, "unit", "", "of the export's amounts: minor (cents) or major; ours are then minor unless --our-unit says otherwise (default: as ours)")
	fs.StringVar(&f.units.ours, "our-unit", "", "of the amounts in our requests: minor or major (default: as the export's, or minor with --unit)")
	fs.StringVar(&f.currency, "currency", "", "the export's column with the currency, which must be ours; an empty text compares none (default: currency, currency_code, ccy or curr, if the export has one)")
	fs.StringVar(&f.ourCurrency, "our-currency", "", "with --currency: JSON pointer to the currency in our requests (default: "+results.DefaultCurrency+", where they have it)")
	fs.StringVar(&f.decimal, "decimal", "", "the character before the decimals of the export's amounts, . or , (default: a point, and no groups of digits)")
	fs.StringVar(&f.delimiter, "delimiter", "", "what parts the columns of a CSV export, one character or TAB (default: as its header shows)")
	fs.StringArrayVar(&f.where, "where", nil, "COLUMN=VALUE of rows that count as done; may be repeated")
	fs.BoolVar(&f.allRows, "all-rows", false, "every row of the exports is of something done, so that commands to settle are printed without --where")
	fs.StringVar(&f.typeCol, "type", "", "the column that parts payments from refunds: rows of several types are not twice")
	fs.StringVar(&f.timeCol, "time", "", "the export's column with the time of a row")
	fs.StringVar(&f.since, "since", "", "the exports begin here: a time with its zone, such as 2026-01-31T00:00:00Z")
	fs.StringVar(&f.until, "until", "", "the exports end here")
	fs.DurationVar(&f.edge, "edge", time.Hour, "how near to --since and --until a row or operation may be missing on the other side")
	results.BindDeclines(fs, &f.declined)
	fs.BoolVar(&f.json, "json", false, "one line of JSON for each finding")
}

// audit is one run.
type audit struct {
	known    *knownMoney
	flags    *auditFlags
	declines results.Declines
	arg      string    // of --journal, for the commands in advice: place.Place.Shell
	from, to time.Time // zero: open
	theirs   *exportIndex
	print    func(Finding) error
	counts   map[string]int
	checked  int
	matched  int            // operations with a row in the exports
	totals   results.Totals // of our operations
	lent     results.Totals // of rows without a currency, in that of their operation
	prefixes prefixes
	restored session.Restore
	get      func(key string, of *persist.Record) (persist.Record, error) // an operation of the account of a record
	gone     func(rec *persist.Record) (match, why string)                // of an operation whose key is gone: see goneKeys

	declinedTexts []string       // the values of --declined that the journal keeps, where they are used
	spellings     int            // operations without a row, with an alike one there
	foreignAlike  int            // those rows
	oneType       map[string]int // operations done here whose rows are all of one type (--type), by that
	heldRestored  bool           // an operation is held as restored
	keyed         bool           // an operation was sent under a key that its API knows
	keyless       bool           // an operation is of an API without keys

	scale scale
}

// Finding is one difference.
type Finding struct {
	Finding   string `json:"finding"`
	Key       string `json:"key,omitempty"`
	Reference string `json:"reference,omitempty"`
	Here      string `json:"here,omitempty"`
	There     string `json:"there,omitempty"`
	Amounts   string `json:"amounts,omitempty"` // with --amount: ours and theirs, as far as they are known
	Why       string `json:"why,omitempty"`     // of NotAuditable
	Next      string `json:"next,omitempty"`
}

// NotAuditable is the finding of an operation with too few known facts.
const NotAuditable = "not-auditable"

// NotDone is the finding of an operation done here, with a row there of a status not selected by --where.
const NotDone = "not-done"

// Generations is the finding of an operation done here in two generations.
const Generations = "generations"

// Failed is the finding of a row that nobody has excluded. By its own word it is of nothing done.
const Failed = "failed"

// run checks the flags, compares the journal with the exports, and prints the findings. The error has the exit status. Without --declined, the answers that the
// journal knows as refusals count. A finding of the kind "edge" (near the first or last time of the exports) proves nothing, and does not fail the audit by itself.
func (f *auditFlags) run(ctx context.Context, s terminal.Streams) error {
	a := &audit{flags: f, counts: map[string]int{}}
	if err := f.check(a); err != nil {
		return err
	}
	at, err := f.Place()
	if err != nil {
		return err
	}
	ses, err := session.OpenReader(at)
	if err != nil {
		return err
	}
	if len(f.declined) == 0 {
		var texts []string
		if a.declines, texts, err = session.KnownDeclines(ctx, ses); err != nil {
			return terminal.JoinExit(err, ses.Close())
		}
		if len(texts) > 0 {
			terminal.Say(s.Err, "%s", session.DeclinedBy(texts, at))
		}
		a.declinedTexts = texts
	}
	a.arg = at.Shell() // the journal, as the printed commands name it
	if a.restored, err = session.RestoreOf(ctx, ses); err != nil {
		return terminal.JoinExit(err, ses.Close())
	}
	a.theirs, err = indexExports(ctx, f, at.Folder(), func(note string) { terminal.Say(s.Err, "%s", note) })
	if err != nil {
		return terminal.JoinExit(err, ses.Close())
	}
	defer a.theirs.close()
	a.print = func(x Finding) error { return f.print(s.Out, x) }
	a.prefixes.ours = func(key string) bool { // reports whether the journal has the key
		_, err := ses.Journal.Get(ctx, persist.ID{Account: persist.Account(f.Account), Key: key})
		return err == nil
	}
	// It returns the record of another key of the same account, such as the one begun in place of of.
	a.get = func(key string, of *persist.Record) (persist.Record, error) {
		return ses.Journal.Get(ctx, persist.ID{Account: of.Account, Key: key})
	}
	if err = a.sides(ctx, ses); err != nil {
		return terminal.JoinExit(err, ses.Close())
	}
	a.conclude(s.Err)
	found := 0
	for kind, n := range a.counts {
		if kind != "edge" {
			found += n
		}
	}
	if found > 0 || a.allEdge() { // allEdge: nothing at all could be compared
		return terminal.JoinExit(&terminal.ExitError{Status: terminal.ExitFindings}, ses.Close())
	}
	return terminal.JoinExit(nil, ses.Close())
}

// sides compares both sides: first every operation of the journal with its rows in the exports, then every row of no operation. Before that, it marks
// the rows of operations done here, so that no other operation with the same reference takes them.
func (a *audit) sides(ctx context.Context, ses *session.Session) error {
	a.gone = goneKeys(ctx, ses, a.theirs) // finds the rows of erased operations
	err := a.markDone(ctx, ses)
	if err == nil {
		err = a.ours(ctx, ses)
	}
	if err == nil {
		err = a.theirs.each(a.foreign)
	}
	if err == nil {
		err = a.unclear() // columns with a status that says neither done nor failed
	}
	return err
}

// check checks the flags, and sets in a what run needs of them: the answers that count as refusals, the times and the units. It reads no file.
func (f *auditFlags) check(a *audit) (err error) {
	if err := f.checkWords(); err != nil {
		return err
	}
	if a.declines, err = results.ParseDeclines(f.declined); err != nil {
		return err
	}
	if f.comma, err = input.ParseDelimiter(f.delimiter); err != nil {
		return err
	}
	if err := f.checkAmounts(); err != nil {
		return err
	}
	if a.from, err = settings.ParseZoned("--since", f.since); err != nil {
		return err
	}
	a.to, err = settings.ParseZoned("--until", f.until)
	return err
}

// checkWords checks the flags that are used as they stand, such as names of columns and JSON pointers. A missing or contradictory one is an error.
func (f *auditFlags) checkWords() error {
	switch {
	case len(f.against) == 0:
		return errors.New("--against is required")
	case f.match == "":
		return errors.New("--match is required: the export's column with the key, or with the reference")
	case f.timeCol == "" && (f.since != "" || f.until != ""):
		return errors.New("--since and --until need --time, the column with the time of a row")
	case f.edge < 0:
		return errors.New("--edge must not be negative")
	}
	if err := f.keys.Check(); err != nil {
		return err
	}
	for _, p := range []struct{ flag, pointer string }{{"--reference", f.reference}, {"--amount", f.amount}, {"--our-currency", f.ourCurrency}} {
		if p.pointer != "" && !strings.HasPrefix(p.pointer, "/") {
			return fmt.Errorf("%s %q is not a JSON pointer, such as /amount", p.flag, words.Clip(p.pointer))
		}
	}
	for _, w := range f.where {
		if !strings.Contains(w, "=") {
			return fmt.Errorf("--where %q: want COLUMN=VALUE", words.Clip(w))
		}
	}
	if f.allRows && len(f.where) > 0 {
		return errors.New("--all-rows and --where: say one")
	}
	return nil
}

// checkAmounts returns an error if the flags about amounts contradict each other, or have a value that they do not take.
func (f *auditFlags) checkAmounts() error {
	if err := results.DecimalMark(f.decimal); err != nil {
		return err
	}
	if f.ourCurrency != "" && f.currency == "" {
		return errors.New("--our-currency needs --currency, the export's column")
	}
	return f.units.check()
}

// namedColumn is a column of an export, and the flag with its name.
type namedColumn struct{ flag, column string }

// columns returns the columns required in every export, each with its flag. A flag without a value requires none, and those of amounts count with --amount only.
func (f *auditFlags) columns() []namedColumn {
	list := []namedColumn{{"--match", f.match}}
	add := func(on bool, flag, column string) {
		if on && column != "" {
			list = append(list, namedColumn{flag, column})
		}
	}
	add(f.amount != "", "--amount-column", f.amountCol)
	add(f.amount != "", "--currency", f.currency)
	add(true, "--type", f.typeCol)
	add(true, "--time", f.timeCol)
	for _, w := range f.where {
		column, _, _ := strings.Cut(w, "=")
		add(true, "--where", column)
	}
	return list
}

// unselected returns the cell by which --where does not count a row as done, such as "status=failed"; "" if the row counts: in each column named by --where it has one
// of the values. cell returns the row's cell of a column.
func (f *auditFlags) unselected(cell func(column string) string) string {
	wanted := map[string][]string{} // several --where of one column are alternatives
	for _, w := range f.where {
		column, value, _ := strings.Cut(w, "=")
		wanted[column] = append(wanted[column], strings.TrimSpace(value))
	}
	for _, w := range f.where {
		column, _, _ := strings.Cut(w, "=")
		if !slices.Contains(wanted[column], cell(column)) {
			return column + "=" + words.Clip(cell(column))
		}
	}
	return ""
}

// print writes a finding (a difference between the journal and the exports) to w: with --json as one line of JSON, else as one line of text.
func (f *auditFlags) print(w io.Writer, x Finding) error {
	if f.json {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(x)
	}
	text := fmt.Sprintf("%-13s %s", x.Finding, x.Key)
	for _, part := range []string{x.Reference, x.Here, x.There, x.Amounts, x.Why, x.Next} {
		if part != "" {
			text += "  " + part
		}
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
