package batch

import (
	"context"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// asBefore returns an error for a batch that leaves out a flag of earlier runs on the journal, so that it would send rows twice, or in another order. The error names
// the way to leave it out on purpose. used is the profile of this run.
func (f *batchFlags) asBefore(ctx context.Context, ses *session.Session, origin string, used *profile.Profile) error {
	known, err := f.asNoted(ctx, ses, used)
	if err != nil {
		return err
	}
	return f.asBegun(ctx, ses, origin, used, known)
}

// checkOrigin asks the user before a file is sent to a server to which none of its rows went, while its own journal has some of their keys: --url may be mistyped, and
// new rows would go to a wrong server. A dry run only prints the warning.
func (f *batchFlags) checkOrigin(ctx context.Context, b *batch, at place.Place) error {
	if f.otherServer || !at.IsFile() || !b.isOwn(at.Path) {
		return nil
	}
	ses, _ := openExisting(at)
	if ses == nil {
		return nil // the run meets the error
	}
	defer ses.Close() // only read from
	other := ""
	for _, row := range spread(b.survey.sample.rows, wasRunRows) {
		rec, err := ses.Journal.Get(ctx, persist.ID{Account: b.survey.account, Key: row.name})
		switch {
		case err != nil:
		case rec.Origin == b.survey.origin:
			return nil
		default:
			other = rec.Origin
		}
	}
	if other == "" {
		return nil
	}
	return f.askBy(b, "--other-server", fmt.Sprintf("%s: its rows were sent to %s before, and none to %s: if --url is mistyped, new rows go to a wrong server", b.in.Name, other, b.survey.origin))
}

// asBegun returns an error for a batch that leaves out a flag about keys with which the operations of the journal at the same server were begun: --key-header, --profile
// or --already-done. The flag was most likely forgotten. A server does not see a key in another header, and one that takes no keys would carry out again what is sent
// again under a profile that trusts them. With noted, the journal tells the profile of the latest run itself, and only the header is compared. Else one operation begun
// under this run's profile, used, shows that nothing was forgotten. Only the first records of the journal are read.
func (f *batchFlags) asBegun(ctx context.Context, ses *session.Session, origin string, used *profile.Profile, noted bool) error {
	looked, forgotten, own := 0, "", noted || f.profileSaid
	for rec, err := range ses.Journal.List(ctx, persist.Query{Account: persist.Account(f.Account)}) {
		if looked++; looked > session.KeyHeaderLook || err != nil && !persist.OfOneRecord(err) {
			break // the batch itself meets the error
		}
		if err != nil || rec.Origin != origin {
			continue
		}
		if header := session.KeyHeaderOf(&rec); header != "" && !f.newJournal && !strings.EqualFold(header, f.KeyHeader) {
			return fmt.Errorf("journal %s: it was begun with --key-header %s; say that again, or --key-header with another name and --new-journal, on purpose", ses.Place.Name, header)
		}
		if rules := keyRules(rec.Profile); !forgets(rules, keyRules(used.Name)) {
			own = true
		} else if forgotten == "" {
			forgotten = rules
		}
	}
	if forgotten == "" || own {
		return nil
	}
	return f.otherRules(ses, "its operations at "+origin, forgotten)
}

// otherRules returns the error for a batch under another profile than what was begun before, about which it is: by that one the API treats keys otherwise. rules is
// the keyRules of that one.
func (f *batchFlags) otherRules(ses *session.Session, about, rules string) error {
	name, natural := strings.CutSuffix(rules, words.NaturalMark)
	flag := "--profile " + words.ShellQuote(name)
	if _, builtIn := profile.ByName(name); !builtIn {
		flag = fmt.Sprintf("the profile file of %q (--profile FILE)", words.Clip(name))
	}
	if natural {
		flag += " and --already-done"
	}
	return fmt.Errorf("journal %s: %s had %s, by which the API treats keys otherwise than by the flags of this run: say that again, or --profile %s on purpose", ses.Place.Name, about, flag, words.ShellQuote(f.Profile))
}

// forgets reports whether a run with the keyRules mine leaves out a flag of one with the keyRules theirs: --profile, or --already-done. One that adds --already-done
// leaves out nothing.
func forgets(theirs, mine string) bool {
	return mine != theirs && mine != theirs+words.NaturalMark
}

// keyRules returns the part of a profile's name that tells how the API treats keys: the name without the marks of --key-header ("@") and --done, and with that of
// --already-done, which says that the API takes a number of the business once, whatever the key.
func keyRules(name string) string {
	base := name
	if i := strings.IndexAny(name, words.KeyHeaderMark+words.DoneMark[:1]); i >= 0 {
		base = name[:i]
	}
	if strings.Contains(name, words.NaturalMark) {
		return base + words.NaturalMark
	}
	return base
}
