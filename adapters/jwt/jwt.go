// Package jwt implements the port for access tokens with JSON Web Tokens (RFC 7519, RFC 9068): those
// of sessions and publishers signed by Ed25519 (RFC 8037), those of grants as is configured. It manages
// the keys. It does not check whether the session or the grant of a token is still active.
package jwt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	jwt "github.com/golang-jwt/jwt/v5"
	"github.com/google/wire"
	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Set provides an Issuer as the signer and the verifier of access tokens, and its published keys.
var Set = wire.NewSet(
	Open, wire.Bind(new(secrets.TokenSigner), new(*Issuer)), wire.Bind(new(secrets.TokenVerifier), new(*Issuer)),
	wire.Bind(new(authstore.PublishedKeys), new(*Issuer)),
)

const (
	tokenType = "at+jwt" // RFC 9068, section 2.1
	maxToken  = 14 << 10 // characters of a token: one of a session has about 400, one of a publisher up to 13,000
)

// maxRemembered is the greatest number of permissions of a token that is remembered after its
// verification. It bounds the memory; most tokens of publishers have one or two.
const maxRemembered = 2

// Issuer signs and verifies access tokens. It is safe for concurrent use.
type Issuer struct {
	config   Config
	clock    clock.Clock
	keys     *keySet
	verified *verifiedTokens
	parser   *jwt.Parser
}

// Open loads the signing keys, or creates one, and announces them in the key ring. Until the
// returned function is called, it reloads the files when they change and renews the announcement.
func Open(
	ctx context.Context, c Config, ring authstore.KeyRing, clk clock.Clock, log *logrus.Entry,
) (*Issuer, func(), error) {
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	i := &Issuer{config: c, clock: clk, verified: newVerifiedTokens()}
	i.keys = &keySet{
		ring: ring, clock: clk, life: c.publicKeyTTL(), verified: i.verified, folders: c.keyFolders(), alg: c.grantAlgorithm(),
		lookups: rate.NewLimiter(rate.Every(lookupEvery), lookupsAtOnce),
	}
	i.parser = jwt.NewParser(
		jwt.WithValidMethods(algorithms()), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(), jwt.WithTimeFunc(clk.Now),
	)
	if err := i.keys.reloadFiles(ctx); err != nil {
		return nil, nil, err
	}
	for _, folder := range i.keys.folders {
		warnOfAccess(folder.dir, log)
	}
	if i.keys.unknown.Load() {
		log.Warn("the signing key cannot be announced, because the database cannot be written: no tokens are issued until it is")
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { i.watchKeys(watching, log) })
	return i, func() { stop(); done.Wait() }, nil
}

// watchKeys keeps the keys up to date until ctx ends. After an error the current keys stay in use.
func (i *Issuer) watchKeys(ctx context.Context, log *logrus.Entry) {
	reload, renew := time.NewTicker(reloadEvery), time.NewTicker(announceEvery)
	defer reload.Stop()
	defer renew.Stop()
	failed := ""
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-reload.C:
			err = i.keys.reloadFiles(ctx)
		case <-renew.C:
			err = i.keys.renewAnnouncement(ctx)
		}
		switch {
		case err == nil:
			failed = ""
		case ctx.Err() == nil && err.Error() != failed:
			failed = err.Error() // log it once, not every few seconds
			log.WithError(err).Error("signing keys could not be read again; the current ones stay in use")
		}
	}
}

// accessClaims contains the claims of a token.
type accessClaims struct {
	jwt.RegisteredClaims
	ClientID  string `json:"client_id,omitempty"`
	SessionID string `json:"sid,omitempty"`
	// The claims of a publisher.
	Method      string            `json:"auth_method,omitempty"`
	Permissions []permissionClaim `json:"permissions,omitempty"`
	// The claims of a grant.
	Scope    string           `json:"scope,omitempty"` // separated by spaces
	Level    string           `json:"acr,omitempty"`
	AuthTime *jwt.NumericDate `json:"auth_time,omitempty"`
}

// permissionClaim is a permission of a publisher.
type permissionClaim struct {
	Actions  []string `json:"actions"`
	Resource string   `json:"resource"`
	Policy   string   `json:"policy,omitempty"`
}

// newClaims returns the claims in the form of a token.
func (i *Issuer) newClaims(c secrets.TokenClaims) accessClaims {
	claims := accessClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: i.config.Issuer, Audience: jwt.ClaimStrings{i.config.Audience}, Subject: string(c.UserID), ID: c.ID,
			IssuedAt: jwt.NewNumericDate(c.IssuedAt), ExpiresAt: jwt.NewNumericDate(c.ExpiresAt),
		},
		ClientID:  i.config.Issuer, // every token is issued to a caller of the service's own API
		SessionID: string(c.SessionID),
	}
	if p := c.Publisher; p != nil {
		claims.Subject, claims.Method = p.Subject, p.Method
		for _, permission := range p.Permissions {
			claims.Permissions = append(claims.Permissions, permissionClaim{
				permission.Actions, permission.Pattern, permission.Policy,
			})
		}
	}
	return claims
}

// Sign returns a token with the claims. It returns fault.Unavailable if the service started while
// the database could not be written, and other instances do not know the key yet.
func (i *Issuer) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	if i.keys.unknown.Load() {
		return "", fault.New(
			fault.Unavailable, "the signing key is not announced yet, because the database cannot be written")
	}
	key, grants := i.keys.currentSigners()
	var claims jwt.Claims = i.newClaims(c)
	if c.Granted != nil {
		var err error
		if claims, err = i.newGrantClaims(c); err != nil {
			return "", err
		}
		key = grants
	}
	t := jwt.NewWithClaims(jwt.GetSigningMethod(key.algorithm), claims)
	t.Header["typ"], t.Header["kid"] = tokenType, string(key.id)
	signed, err := t.SignedString(key.private)
	if err != nil {
		return "", fault.Wrap(fault.Internal, "sign an access token", err)
	}
	return auth.AccessToken(signed), nil
}

// Verify returns the claims of a token.
func (i *Issuer) Verify(ctx context.Context, t auth.AccessToken) (secrets.TokenClaims, error) {
	if len(t) > maxToken {
		return secrets.TokenClaims{}, errInvalidToken()
	}
	d := digest(sha256.Sum256([]byte(t)))
	c, ok, seen := i.verified.getClaims(d)
	if ok {
		if i.clock.Now().Before(c.ExpiresAt) {
			return c, nil
		}
		return secrets.TokenClaims{}, errExpiredToken()
	}
	c, err := i.parseToken(ctx, string(t))
	if err != nil {
		return secrets.TokenClaims{}, err
	}
	if c.Publisher == nil && c.Granted == nil || c.Publisher != nil && len(c.Publisher.Permissions) <= maxRemembered ||
		c.Granted != nil && len(t) <= maxRememberedGrant {
		i.verified.putClaims(d, c, seen)
	}
	return c, nil
}

// PublicKeys returns the public keys of all instances, ordered by ID.
func (i *Issuer) PublicKeys(ctx context.Context) ([]authstore.PublicKey, error) {
	return i.keys.listPublicKeys(ctx)
}

func (i *Issuer) parseToken(ctx context.Context, text string) (secrets.TokenClaims, error) {
	var claims accessClaims
	var ringErr error // the key ring did not answer
	_, err := i.parser.ParseWithClaims(text, &claims, func(t *jwt.Token) (any, error) {
		if err := i.checkHeader(t, &claims); err != nil {
			return nil, err
		}
		kid, _ := t.Header["kid"].(string)
		public, err := i.keys.findKey(ctx, authstore.KeyID(kid))
		if err != nil && !fault.Is(err, fault.NotFound) {
			ringErr = err
		}
		if err == nil && authstore.Algorithm(public) != t.Method.Alg() {
			return nil, errors.New("the key is not for the algorithm")
		}
		return public, err
	})
	switch {
	case ringErr != nil:
		return secrets.TokenClaims{}, ringErr
	case isOnlyExpired(err):
		return secrets.TokenClaims{}, errExpiredToken()
	case err != nil:
		return secrets.TokenClaims{}, errInvalidToken()
	case i.isGrant(&claims):
		return convertGrantClaims(&claims)
	}
	return convertClaims(&claims)
}

// checkHeader checks the header of a token, and its issuer and audience: what needs no key.
func (i *Issuer) checkHeader(t *jwt.Token, c *accessClaims) error {
	typ, _ := t.Header["typ"].(string)
	if typ = strings.ToLower(typ); typ != tokenType && typ != "application/"+tokenType {
		return errors.New("typ is not " + tokenType)
	}
	if _, extended := t.Header["crit"]; extended {
		return errors.New("crit names extensions that are not supported") // RFC 7515, section 4.1.11
	}
	switch {
	case i.isGrant(c):
		return nil
	case c.Issuer != i.config.Issuer || !slices.Contains(c.Audience, i.config.Audience):
		return errors.New("the token is of another issuer, or for another audience")
	case t.Method != jwt.SigningMethodEdDSA:
		return errors.New("a token of a session is signed by Ed25519")
	}
	return nil
}

// isOnlyExpired reports whether a token with a valid signature has expired and has no other error.
func isOnlyExpired(err error) bool {
	if !errors.Is(err, jwt.ErrTokenExpired) {
		return false
	}
	for _, other := range []error{
		jwt.ErrTokenRequiredClaimMissing, jwt.ErrTokenUsedBeforeIssued, jwt.ErrTokenNotValidYet,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

func convertClaims(c *accessClaims) (secrets.TokenClaims, error) {
	if c.Method != "" {
		return convertPublisherClaims(c)
	}
	session, err := auth.ParseUUID[auth.SessionID]("sid", c.SessionID)
	if err != nil {
		return secrets.TokenClaims{}, errInvalidToken()
	}
	user, err := auth.ParseUUID[auth.UserID]("sub", c.Subject)
	if err != nil || c.ID == "" || c.IssuedAt == nil {
		return secrets.TokenClaims{}, errInvalidToken()
	}
	return secrets.TokenClaims{
		ID: c.ID, UserID: user, SessionID: session, IssuedAt: c.IssuedAt.Time, ExpiresAt: c.ExpiresAt.Time,
	}, nil
}

// convertPublisherClaims returns the claims of a publisher. A publisher has no session.
func convertPublisherClaims(c *accessClaims) (secrets.TokenClaims, error) {
	if c.SessionID != "" || c.Subject == "" || c.ID == "" || c.IssuedAt == nil {
		return secrets.TokenClaims{}, errInvalidToken()
	}
	p := &auth.Publisher{Method: c.Method, Subject: c.Subject}
	for _, permission := range c.Permissions {
		p.Permissions = append(p.Permissions, auth.PublisherPermission{
			Actions: permission.Actions, Pattern: permission.Resource, Policy: permission.Policy,
		})
	}
	return secrets.TokenClaims{ID: c.ID, Publisher: p, IssuedAt: c.IssuedAt.Time, ExpiresAt: c.ExpiresAt.Time}, nil
}

func errInvalidToken() error {
	return fault.New(fault.Unauthenticated, "the access token is not valid").WithCode(auth.CodeInvalidToken)
}

func errExpiredToken() error {
	return fault.New(fault.Unauthenticated, "the access token has expired").WithCode(auth.CodeTokenExpired)
}

// maxVerified is the maximum size of a generation: the number of its tokens, of which those of grants
// count more. Two generations are kept, about 10 MB together.
const (
	maxVerified = 1 << 15
	grantSize   = 4
)

// digest is the SHA-256 hash of a token. No token is kept in clear text.
type digest [sha256.Size]byte

// verifiedTokens remembers tokens with a valid signature, because verifying a signature costs far
// more than the rest of a request. It drops one generation at a time, so recently used tokens stay.
// It is safe for concurrent use.
type verifiedTokens struct {
	mu         sync.RWMutex
	young, old map[digest]secrets.TokenClaims
	size       int    // of the young generation
	forgotten  uint64 // number of calls of forgetAll
}

func newVerifiedTokens() *verifiedTokens {
	return &verifiedTokens{young: map[digest]secrets.TokenClaims{}}
}

// getClaims returns the claims of a token. If it is unknown, the caller may verify the token and
// pass seen to putClaims.
func (v *verifiedTokens) getClaims(d digest) (c secrets.TokenClaims, ok bool, seen uint64) {
	v.mu.RLock()
	seen = v.forgotten
	c, ok = v.young[d]
	if ok {
		v.mu.RUnlock()
		return c, true, seen
	}
	c, ok = v.old[d]
	v.mu.RUnlock()
	if ok {
		v.putClaims(d, c, seen)
	}
	return c, ok, seen
}

// putClaims stores the claims of a token, unless forgetAll was called since getClaims returned
// seen, because the key of the token may have been removed in between.
func (v *verifiedTokens) putClaims(d digest, c secrets.TokenClaims, seen uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seen != v.forgotten {
		return
	}
	if v.size >= maxVerified {
		v.young, v.old, v.size = make(map[digest]secrets.TokenClaims, maxVerified/4), v.young, 0
	}
	v.young[d] = c
	v.size++
	if c.Granted != nil {
		v.size += grantSize - 1
	}
}

func (v *verifiedTokens) forgetAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.young, v.old, v.size = map[digest]secrets.TokenClaims{}, nil, 0
	v.forgotten++
}

// Config contains the settings of access tokens (contract A-22). DataDir and TokenLife come from
// other settings.
type Config struct {
	Issuer   string `env:"TOKEN_ISSUER" envDefault:"tollgate" desc:"issuer (iss) of access tokens"`
	Audience string `env:"TOKEN_AUDIENCE" envDefault:"tollgate" desc:"audience (aud) of access tokens"`
	KeysDir  string `env:"SIGNING_KEYS_DIR" desc:"folder of signing keys as PKCS#8 PEM files (Ed25519); the last file by name signs, all verify; default: a key is created in DATA_DIR/keys"`
	OAuthAlg string `env:"OAUTH_ALG" envDefault:"EdDSA" desc:"algorithm of the access tokens for tool servers: EdDSA, ES256 or RS256; SIGNING_KEYS_DIR, if it is set, needs a key for it (P-256, or RSA of at least 2048 bits) and one of Ed25519 for sessions"`
	DataDir  string `env:"-"`
	// OAuthIssuer is the issuer of tokens of grants: the origin of PUBLIC_URL. Empty for no such tokens.
	OAuthIssuer string `env:"-"`
	// TokenLife is how long an access token is good, which another setting names. A key counts
	// longer than that after it was last announced.
	TokenLife time.Duration `env:"-"`
}

// Validate returns an error that names the variable whose value is out of range.
func (c Config) Validate() error {
	switch {
	case c.Issuer == "":
		return errors.New("TOKEN_ISSUER must not be empty")
	case c.Audience == "":
		return errors.New("TOKEN_AUDIENCE must not be empty")
	case c.KeysDir == "" && c.DataDir == "":
		return errors.New("SIGNING_KEYS_DIR must not be empty if DATA_DIR is empty")
	case c.OAuthAlg != "" && !slices.Contains(algorithms(), c.OAuthAlg):
		return fmt.Errorf("OAUTH_ALG must be EdDSA, ES256 or RS256, not %.60q", c.OAuthAlg)
	case c.OAuthIssuer != "" && c.Audience == c.OAuthIssuer:
		return errors.New("TOKEN_AUDIENCE must not be the origin of PUBLIC_URL, which is the audience of other tokens")
	}
	return nil
}

// publicKeyTTL returns how long a key stays valid after its last announcement: longer than the life
// of a token signed just before the next announcement, and long enough that one announcement may
// fail.
func (c Config) publicKeyTTL() time.Duration {
	life := c.TokenLife
	if c.OAuthIssuer != "" {
		life = max(life, oauth.MaxTokenTTL)
	}
	return max(minKeyLife, life+2*announceEvery)
}

// grantAlgorithm returns the algorithm of tokens of grants; empty without them.
func (c Config) grantAlgorithm() string {
	if c.OAuthIssuer == "" {
		return ""
	}
	return cmp.Or(c.OAuthAlg, authstore.EdDSA)
}

// keyFolders returns the folders of the keys. A key of another algorithm that the service creates has
// a folder of its own, because earlier versions do not start with a file that is not of Ed25519.
func (c Config) keyFolders() []keyFolder {
	if c.KeysDir != "" {
		return []keyFolder{{dir: c.KeysDir}}
	}
	own := []keyFolder{{dir: filepath.Join(c.DataDir, "keys"), makes: authstore.EdDSA}}
	if other := c.grantAlgorithm(); other != "" && other != authstore.EdDSA {
		own = append(own, keyFolder{dir: filepath.Join(own[0].dir, "oauth"), makes: other})
	}
	return own
}
