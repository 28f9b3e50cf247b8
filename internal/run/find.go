package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// finder finds the records that an operator's call means, by key and account.
type finder struct {
	cfg         *Config // for the client's account
	engine      *engine // reads the journal
	accountBase string  // Config.Account, as part of an ID
}

// account returns the account reached by a call with this context, in the form of records, without scopes: Config.Account, and inside
// it the context's.
func (f *finder) account(ctx context.Context) string {
	if name, named := AccountFromContext(ctx); named {
		return persist.Account(f.cfg.Account, [2]string{"", name})
	}
	return f.accountBase
}

// lookup finds the record of a key, for the call of this name, such as Lookup or Settle. It waits for the record of an answer given already. Errors are
// complete: no record, several records, a record this client cannot read. An abandon also gets the clear part of a sealed record. The record says who has it at
// this moment (looking).
func (f *finder) lookup(ctx context.Context, name string, key string, chosen Chosen) (persist.Record, error) {
	failed := func(cause error, why ...error) (persist.Record, error) {
		return persist.Record{}, newError(name, unclear(key), cause, why...)
	}
	if key == "" { // the empty key selects all records
		return failed(fmt.Errorf("the empty key: %w", persist.ErrNotFound))
	}
	// A caller may have the answer before its record says so.
	if err := f.engine.recorded(ctx, func(id persist.ID) bool { return id.Key == key }); err != nil {
		return failed(err, waitedInVain(err))
	}
	if err := checkAccount(ctx); err != nil {
		return failed(err, ErrConfig)
	}
	match, err := f.matching(ctx, key, f.account(ctx))
	if err != nil {
		return failed(err)
	}
	found, err := f.listed(ctx, name, &match, &chosen)
	if err != nil {
		return failed(err)
	}
	switch len(found) {
	case 0:
		return failed(persist.ErrNotFound)
	case 1:
		looking(ctx, f.engine)(&found[0])
		return found[0], nil
	}
	return failed(fmt.Errorf("it exists in %d accounts; name one with OfAccount: %s", len(found), accountsOf(found)), ErrConfig)
}

// listed returns the records that a call such as Lookup may mean by its key or reference. Errors: the journal's, and a record that this client cannot read. Of a
// sealed one an Abandon gets the clear part (endsSealed).
func (f *finder) listed(ctx context.Context, name string, match *keyMatch, chosen *Chosen) (found []persist.Record, err error) {
	for rec, err := range f.engine.journal.List(ctx, match.query) {
		if err == nil {
			err = rec.Sealed()
		}
		if clear, ok := sealedRecord(&rec, err); ok && endsSealed(name) {
			// The error must name the key by which the person has asked.
			if rec, err = clear, nil; rec.Key != match.query.Key && match.query.Key != "" {
				rec.Key = match.query.Key // the journal has a hash of it
			}
		}
		if err != nil {
			return nil, err
		}
		if match.is(&rec) && chosen.is(&rec) {
			found = append(found, rec)
		}
	}
	return found, nil
}

// wrong returns the error of an act on one operation that cannot be done as asked for, because of cause. The record does not change; the error tells its state, if
// it can be read.
func (f *finder) wrong(ctx context.Context, name string, key string, chosen Chosen, cause error) error {
	rec, err := f.lookup(ctx, name, key, chosen)
	if err != nil {
		return newError(name, unclear(key), cause, ErrConfig)
	}
	return f.engine.refusals.refuse(ctx, name, &rec, operation.KeyOnly, cause, ErrConfig).err
}

// lookupUnassigned returns the one operation of a key, or reference, under no account. chosen may narrow the
// choice. It is an error if there is none or several; the errors are complete, for a caller of the method called
// name.
func (f *finder) lookupUnassigned(ctx context.Context, name string, key string, chosen Chosen) (persist.Record, error) {
	failed := func(cause error, why ...error) (persist.Record, error) {
		return persist.Record{}, newError(name, unclear(key), cause, why...)
	}
	if err := checkAccount(ctx); err != nil {
		return failed(err, ErrConfig)
	}
	none := request.Unassigned(f.account(ctx))
	if len(none) == 0 {
		return failed(errors.New("no account to assign it to; name one by ContextWithAccount or Config.Account"), ErrConfig)
	}
	var found []persist.Record
	for _, account := range none {
		match, err := f.matching(ctx, key, account)
		if err != nil {
			return failed(err)
		}
		for rec, err := range f.engine.journal.List(ctx, match.query) {
			switch {
			case err != nil:
				return failed(err)
			case request.Base(rec.Account) == account && match.is(&rec) && chosen.is(&rec):
				found = append(found, rec)
			}
		}
	}
	switch len(found) {
	case 0:
		return failed(fmt.Errorf("no operation of this key is without an account: %w", persist.ErrNotFound))
	case 1:
		return found[0], nil
	}
	return failed(fmt.Errorf("it exists in %d accounts; name one with OfAccount: %s", len(found), accountsOf(found)), ErrConfig)
}

// matching returns the query and the test for the records of key in an account. key is a key first, and if the account has no such key, a reference (a text that
// stands for a key in errors). After an error the result is of no use. Errors: the journal's.
func (f *finder) matching(ctx context.Context, key string, account string) (keyMatch, error) {
	byKey := keyMatch{persist.Query{Account: account, Key: key}, func(*persist.Record) bool { return true }}
	if !request.IsReference(key) {
		return byKey, nil
	}
	// One record is enough: a key that looks like a reference is a key.
	for _, err := range f.cfg.Journal.List(ctx, byKey.query) {
		return byKey, err
	}
	secret, err := f.engine.owners.Secret(ctx)
	return keyMatch{persist.Query{Account: account}, func(rec *persist.Record) bool {
		return request.Reference(rec.ID, secret) == key
	}}, err
}

// keyMatch selects the records of a key, or of a reference in its place.
type keyMatch struct {
	query persist.Query
	is    func(*persist.Record) bool
}

// accountsOf lists the accounts of records, for an error.
func accountsOf(records []persist.Record) string {
	var list []string
	for _, rec := range records {
		list = append(list, fmt.Sprintf("%q", rec.ScopedAccount()))
	}
	return strings.Join(list, ", ")
}
