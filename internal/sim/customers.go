package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// customers is a program's way to tell its customers apart.
type customers uint8

const (
	apart         customers = iota // each has a client of its own, with Config.Account
	byAccount                      // one client serves all: ContextWithAccount names the customer of a call, and Authorize reads it
	byCredentials                  // one client serves all: each request carries an Authorization of its own
)

// String returns, in words, how the simulation tells customers apart.
func (c customers) String() string { return [...]string{"apart", "by account", "by credentials"}[c] }

// shop is Config.Account if ContextWithAccount names the customers.
const shop = "shop"

// customers draws how the customers of a run are told apart: by client (the default), by account, or by credentials alone.
func (s *Setting) customers(r *rand.Rand) {
	switch one := r.IntN(2) == 0; {
	case one && s.Authorize && s.Accounts > 1:
		s.Customers = byAccount
	case one && !s.Authorize:
		s.Customers, s.Accounts = byCredentials, 2
	}
}

// clients returns the number of clients that a process needs for all customers.
func (s *Setting) clients() int {
	if s.Customers == apart {
		return s.Accounts
	}
	return 1
}

// account returns the account under which a customer's records stand in the journal, by the way in which the simulation tells customers apart.
func (s *Setting) account(customer string) string {
	switch s.Customers {
	case byAccount:
		return persist.Account(shop, [2]string{"", customer})
	case byCredentials:
		return ""
	}
	return customer
}

// configAccount returns Config.Account of the n-th client of a process, by the way in which the simulation tells customers apart.
func (s *Setting) configAccount(n int) string {
	switch s.Customers {
	case byAccount:
		return shop
	case byCredentials:
		return ""
	}
	return accountName(n)
}

// account returns Config.Account for the n-th client of this run of the program; empty in runs that do not name accounts yet: the first ones, if the plan says
// so (Changes.Accounts), and before the faults have stopped (calm).
func (l *life) account(n int) string {
	if s := &l.w.plan.Setting; l.number < s.Changes.Accounts && !l.w.calm.Load() {
		return ""
	}
	return l.w.plan.Setting.configAccount(n)
}

// canon returns the name of an operation in the model: the same whether its record has an account or not yet.
func (s *Setting) canon(id persist.ID) persist.ID {
	if s.Changes.Accounts > 0 {
		id.Account = accountName(0)
	}
	return id
}

// durable returns the record that the worst crash at this moment would leave, by the model's name of the operation (canon); false: there would be none. It may
// still be without an account.
func (w *world) durable(s store, id persist.ID) (persist.Record, bool) {
	rec, stands := s.durable(id)
	if !stands && w.plan.Setting.Changes.Accounts > 0 {
		return s.durable(persist.ID{Key: id.Key})
	}
	return rec, stands
}

// assign simulates a person who assigns an operation without an account to its account. key is its key or its reference.
func (w *world) assign(l *life, key oncehttp.Key) {
	err := l.clients[0].Assign(context.Background(), key)
	w.logf("operator: %s is assigned: %v", key, err)
}

// unassigned reports whether a record has no account although the clients of this run of the program (life) name one: it is from before they did. The plan says from
// which life on they do (Changes.Accounts; 0: always). All of them then have the account of the first one.
func (l *life) unassigned(rec persist.Record) bool {
	return l.w.plan.Setting.Changes.Accounts > 0 && rec.Account == "" && l.account(0) != ""
}

// of returns the client of this run of the program (life) that a customer uses: its own, or the one for all.
func (l *life) of(customer string) *oncehttp.Client {
	if l.w.plan.Setting.Customers != apart {
		return l.clients[0]
	}
	return l.clients[number(customer)]
}

// customerKey is the key of the customer in the context of a call, for the simulator only.
type customerKey struct{}

// as returns a context for the calls of a customer: with its account if that tells customers apart, and always with its name for the simulator.
func (w *world) as(ctx context.Context, customer string) context.Context {
	if w.plan.Setting.Customers == byAccount {
		ctx = oncehttp.ContextWithAccount(ctx, customer)
	}
	return context.WithValue(ctx, customerKey{}, customer)
}

// customer returns the customer to whom a request on the simulated network belongs.
func (n *network) customer(req *http.Request) string {
	if n.w.plan.Setting.Customers == apart {
		return accountName(n.account)
	}
	return principal(req)
}

// names is Config.Authorize of a client for all customers: it sets the credentials of the request's customer.
func (w *world) names(req *http.Request) error {
	customer, named := oncehttp.AccountFromContext(req.Context())
	if !named {
		return errors.New("sim: no account in the context of a request")
	}
	return w.authorize(customer)(req)
}

// id returns the ID of the operation that an order's call under this key means in the journal.
func (w *world) id(o *order, key oncehttp.Key) persist.ID {
	return persist.ID{Account: w.plan.Setting.account(o.account), Key: string(key)}
}

// credentialsOf returns the credentials in a record.
func credentialsOf(rec persist.Record) string {
	var b strings.Builder
	for _, c := range rec.Credentials {
		b.WriteString(c.Name + "=" + c.Digest + " ")
	}
	return b.String()
}

// owns notes the customer to whom the credentials in a new record belong; ctx, that of the call, names it. Later the record alone shows its customer.
func (m *model) owns(ctx context.Context, rec persist.Record) {
	customer, ok := ctx.Value(customerKey{}).(string)
	if !ok || m.w.plan.Setting.Customers != byCredentials {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owners[credentialsOf(rec)] = customer
}

// customer returns the customer who owns a record, by the setting of the run. With accounts, the record's account has one inside: the customer's. The caller
// holds mu.
func (m *model) customer(rec persist.Record) string {
	switch m.w.plan.Setting.Customers {
	case byAccount:
		if _, scopes := persist.SplitAccount(rec.Account); len(scopes) > 0 {
			return scopes[0][1]
		}
	case byCredentials:
		return m.owners[credentialsOf(rec)]
	}
	return m.w.plan.Setting.canon(rec.ID).Account
}

// customerOf returns the customer who owns a record. It takes mu; callers that hold mu use customer.
func (m *model) customerOf(rec persist.Record) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.customer(rec)
}

// keeper returns the customer whose operation has this key. If only the credentials tell customers apart, another customer may have had the key
// before the order's. The caller holds mu.
func (m *model) keeper(o *order, id persist.ID) string {
	if owner := m.op(id).customer; owner != "" && m.w.plan.Setting.Customers == byCredentials {
		return owner
	}
	return o.account
}

// others reports whether the operation of a key is another customer's. Then an order's caller must learn nothing of it. The caller
// holds mu.
func (m *model) others(o *order, id persist.ID) bool { return m.keeper(o, id) != o.account }

// strange checks the error of a call that met another customer's operation: the error must tell nothing of that operation. It returns the verdict of the
// caller: stuck if only the credentials tell customers apart and the faults have stopped (calm), else unknown.
func (m *model) strange(o *order, err error) verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	var e *oncehttp.Error
	if errors.As(err, &e) && (e.Key != "" || e.Answer != nil || e.State != 0 || !errors.Is(err, oncehttp.ErrOutcomeUnknown)) {
		m.failLocked(ServersAnswer, "%s of %s is told %q %v %v of another's operation: %v", o.ref, o.account, e.Key, e.State, e.Answer, err)
	}
	if m.w.calm.Load() && m.w.plan.Setting.Customers == byCredentials {
		return stuck
	}
	return unknown
}
