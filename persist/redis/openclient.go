package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
)

// OpenClient opens the journal at the servers of the program's own client: a *redis.Client, also of Sentinel, or a
// *redis.ClusterClient of go-redis. The client is neither used nor closed. The journal makes connections of its own with
// the client's addresses, dialer, credentials or their provider, TLS, name and OnConnect, at most Options.MaxConns to
// each node. It repeats nothing by itself and reads from no replica, whatever MaxRetries, ReadOnly and the routing of
// the client are: a repeated command could write twice. Hooks and a Limiter are not taken over. ctx bounds the opening
// alone; the opening also ends after Options.CallTimeout.
//
// Errors: ErrOptions for no client, or one of another kind, such as a Ring, whose keys move between servers; those of
// Open.
func OpenClient(ctx context.Context, client goredis.UniversalClient, opts Options) (*Journal, error) {
	opts, err := opts.checked()
	if err != nil {
		return nil, err
	}
	opts.most = &most{}
	switch c := client.(type) {
	case *goredis.Client:
		if c != nil {
			return opts.openAt(ctx, opts.atClient(c.Options()), loadScripts())
		}
	case *goredis.ClusterClient:
		if c != nil {
			return opts.openAt(ctx, opts.atCluster(c.Options()), loadScripts())
		}
	case nil:
	default:
		return nil, fmt.Errorf("%w: a client of type %T; want a *redis.Client or a *redis.ClusterClient", ErrOptions, client)
	}
	return nil, fmt.Errorf("%w: there is no client", ErrOptions)
}

// atClient returns the address and the credentials of the program's client, for the journal's own client, and how it makes a connection (dialer, TLS, name,
// OnConnect, ages). Nothing else of its options is used: o.own sets the journal's own (time limits, number of connections, no repeats).
func (o Options) atClient(from *goredis.Options) address {
	own := &goredis.Options{
		Network: from.Network, Addr: from.Addr, ClientName: from.ClientName, Dialer: from.Dialer,
		Username: from.Username, Password: from.Password, CredentialsProvider: from.CredentialsProvider,
		CredentialsProviderContext: from.CredentialsProviderContext, StreamingCredentialsProvider: from.StreamingCredentialsProvider,
		DB: from.DB, TLSConfig: from.TLSConfig, OnConnect: from.OnConnect,
		ConnMaxIdleTime: from.ConnMaxIdleTime, ConnMaxLifetime: from.ConnMaxLifetime,
	}
	o.own(own)
	return address{options: own, nodes: []string{own.Addr}}
}

// atCluster returns the addresses and the credentials of the program's client of a cluster, for the journal's own client, and how it makes a connection
// (dialer, TLS, name, OnConnect, ages). Nothing else of its options is used: o.own sets the journal's own (time limits, number of connections, no repeats).
func (o Options) atCluster(from *goredis.ClusterOptions) address {
	own := &goredis.Options{
		ClientName: from.ClientName, Dialer: from.Dialer,
		Username: from.Username, Password: from.Password, CredentialsProvider: from.CredentialsProvider,
		CredentialsProviderContext: from.CredentialsProviderContext, StreamingCredentialsProvider: from.StreamingCredentialsProvider,
		TLSConfig: from.TLSConfig, OnConnect: from.OnConnect,
		ConnMaxIdleTime: from.ConnMaxIdleTime, ConnMaxLifetime: from.ConnMaxLifetime,
	}
	o.own(own)
	return address{options: own, nodes: from.Addrs, slots: from.ClusterSlots, clustered: true}
}
