package batch

import (
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
)

// sameHeader returns an error for a batch without --key-header if the journal has operations at the same server begun with --key-header. The flag was most likely
// forgotten, and a server does not see a key in another header. It reads only the first records of the journal.
func (f *batchFlags) sameHeader(ctx context.Context, ses *session.Session, origin string) error {
	if f.KeyHeader != "" {
		return nil
	}
	looked, header := 0, ""
	for rec, err := range ses.Journal.List(ctx, persist.Query{Account: persist.Account(f.Account)}) {
		if looked++; looked > session.KeyHeaderLook || err != nil && !persist.OfOneRecord(err) {
			break // the batch itself meets the error
		}
		if err == nil && rec.Origin == origin {
			header = session.KeyHeaderOf(&rec)
		}
		if header != "" {
			return fmt.Errorf("journal %s: it was begun with --key-header %s; say that again, or --key-header with another name, on purpose", ses.Place.Name, header)
		}
	}
	return nil
}
