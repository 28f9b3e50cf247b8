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

// asBefore returns an error for a batch that leaves out a flag of earlier runs on the journal, so that it would send rows twice, or in another order. A name of a flag says
// that it is left out on purpose. With write true it notes --ordered-by for later runs.
func (f *batchFlags) asBefore(ctx context.Context, ses *session.Session, origin string, used *profile.Profile, write bool) error {
	if err := f.asBegun(ctx, ses, origin, used); err != nil {
		return err
	}
	return f.asOrdered(ctx, ses, write)
}

// checkOrigin asks the user before a file is sent to a server to which none of the operations in the file's own journal went, though others did: --url may be mistyped, and
// new rows would go to a wrong server. A dry run only prints the warning. It reads only the first records of the journal.
func (f *batchFlags) checkOrigin(ctx context.Context, b *batch, at place.Place) error {
	if !f.ownJournal || f.newJournal {
		return nil
	}
	ses, _ := openExisting(at)
	if ses == nil {
		return nil // the run meets the error
	}
	defer ses.Close() // only read from
	looked, other := 0, ""
	for rec, err := range ses.Journal.List(ctx, persist.Query{AllAccounts: true}) {
		if looked++; looked > session.KeyHeaderLook || err != nil && !persist.OfOneRecord(err) || err == nil && rec.Origin == b.survey.origin {
			return nil
		}
		if err == nil {
			other = rec.Origin
		}
	}
	if other == "" {
		return nil
	}
	return f.askNew(b, fmt.Sprintf("%s: its rows were sent to %s before, and none to %s: if --url is mistyped, new rows go to a wrong server", b.in.Name, other, b.survey.origin))
}

// asBegun returns an error for a batch that leaves out a flag about keys with which the operations of the journal at the same server were begun: --key-header, --profile
// or --already-done. The flag was most likely forgotten. A server does not see a key in another header, and one that takes no keys would carry out again what is sent
// again under a profile that trusts them. used is the profile of this run; one operation begun under it is enough to show that nothing was forgotten. Only the first
// records of the journal are read.
func (f *batchFlags) asBegun(ctx context.Context, ses *session.Session, origin string, used *profile.Profile) error {
	looked, forgotten, own := 0, "", false
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
		if flag := forgottenFlag(used.Name, rec.Profile); flag == "" {
			own = true
		} else if forgotten == "" {
			forgotten = flag
		}
	}
	if forgotten == "" || own || f.profileSaid {
		return nil
	}
	return fmt.Errorf("journal %s: its operations at %s were begun with %s, by which the API treats keys otherwise than by the profile of this run: say that again, or --profile %s on purpose",
		ses.Place.Name, origin, forgotten, f.Profile)
}

// forgottenFlag returns the flag by which a recorded profile differs from that of a run in how the API treats keys; "" if it does not. Both are names as records have
// them: with marks for the flags --key-header, --already-done and --done.
func forgottenFlag(used, recorded string) string {
	base := func(name string) string { // without the marks: "@" and the header, "~" and a word for each of the others
		if i := strings.IndexAny(name, words.KeyHeaderMark+words.DoneMark[:1]); i >= 0 {
			return name[:i]
		}
		return name
	}
	if _, builtIn := profile.ByName(base(recorded)); base(recorded) != base(used) {
		if !builtIn {
			return fmt.Sprintf("the profile file of %q (--profile FILE)", words.Clip(base(recorded)))
		}
		return "--profile " + base(recorded)
	}
	if strings.Contains(recorded, words.NaturalMark) && !strings.Contains(used, words.NaturalMark) {
		return "--already-done"
	}
	return ""
}
