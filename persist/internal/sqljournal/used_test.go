package sqljournal

import (
	"database/sql"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// usedRow returns the row of a used key, and its record before.
func usedRow(change func(*persist.Record)) (Row, persist.Record) {
	rec := persist.Record{
		ID: persist.ID{Account: "shop", Key: "key"}, WireKey: "key", State: persist.StateConfirmed, Effect: persist.EffectHappened, Status: 201,
		Created: time.Unix(1000, 5), Finished: time.Unix(1007, 9).UTC(), Revision: 4, Attempts: 2, Sends: 3,
	}
	change(&rec)
	wire := rec.WireKey
	row := Row{ID: RowID(rec.ID), Seq: sql.NullInt64{}, State: int64(rec.State), Swept: sweptUsed, Finished: nanoseconds(rec.Finished)}
	row.Progress = packUsed(&rec, wire, rec.Key)
	return row, rec
}

// TestPackUsed: what is packed comes back.
func TestPackUsed(t *testing.T) {
	t.Parallel()
	sum := "sha256:" + strings.Repeat("0f", 32)
	for name, change := range map[string]func(*persist.Record){
		"plain":   func(*persist.Record) {},
		"refused": func(r *persist.Record) { r.Effect, r.Status = persist.EffectRefused, 402 },
		"absent":  func(r *persist.Record) { r.State, r.Effect, r.Status = persist.StateSettled, persist.EffectAbsent, 0 },
		"status":  func(r *persist.Record) { r.Status = 99 + 200 },
		"most": func(r *persist.Record) {
			r.Revision, r.Attempts, r.Sends, r.Status = math.MaxUint64, math.MaxInt32, math.MaxInt32, 999
		},
		"scopes": func(r *persist.Record) {
			r.Scopes = []persist.Scope{{Name: "Stripe-Account", Value: sum}, {Name: "Stripe-Context"}, {Name: "X-Other", Value: sum}, {Name: "X-Text", Value: "sha256:"}}
		},
		"stripe": func(r *persist.Record) {
			r.Scopes = []persist.Scope{{Name: "Stripe-Account"}, {Name: "Stripe-Context"}}
		},
		"sealed": func(r *persist.Record) {
			r.Carrier, r.SealedEnd, r.Revision, r.Created, r.Attempts, r.Sends = persist.CarrierSealed, strings.Repeat("s", 16), 0, time.Time{}, 0, 0
		},
		"bounded": func(r *persist.Record) { r.KeepKey = time.Hour },
	} {
		row, rec := usedRow(change)
		if rec.KeepKey > 0 {
			row.SweepAt = nanoseconds(rec.Finished.Add(rec.KeepKey))
		}
		got, err := row.Record()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Effect != rec.Effect || got.Status != rec.Status || got.State != rec.State || !got.Finished.Equal(rec.Finished) || got.Created.After(rec.Created) || rec.Created.Sub(got.Created) > time.Second ||
			got.Revision != rec.Revision || got.Attempts != rec.Attempts || got.Sends != rec.Sends || !reflect.DeepEqual(got.Scopes, rec.Scopes) || got.SealedEnd != rec.SealedEnd || got.KeepKey != rec.KeepKey || !got.Erased || !got.Swept {
			t.Errorf("%s: %+v, want %+v", name, got, rec)
		}
		if most := 11; len(row.Progress) > most && (name == "plain" || name == "stripe" || name == "refused" || name == "absent") || name == "sealed" && len(row.Progress) > 19 {
			t.Errorf("%s: %d bytes, and the row fills one word more", name, len(row.Progress))
		}
		for n := range row.Progress {
			cut := row
			if cut.Progress = row.Progress[:n]; n > 0 && rec.SealedEnd == "" {
				if _, err := cut.Record(); !errors.Is(err, persist.ErrCorrupt) {
					t.Errorf("%s, cut off after %d bytes: %v", name, n, err)
				}
			}
		}
	}
}

// TestUsedOfLater: a used key of a later format is told as that.
func TestUsedOfLater(t *testing.T) {
	t.Parallel()
	row, _ := usedRow(func(*persist.Record) {})
	row.Progress[0]++
	if _, err := row.Record(); !errors.Is(err, persist.ErrNewer) {
		t.Errorf("%v, want ErrNewer", err)
	}
	row.Progress = nil
	if _, err := row.Record(); !errors.Is(err, persist.ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
}
