package rest

// The maximum sizes of a request in bytes (contract O-11).
const (
	MaxListBody   = 1<<20 + 64<<10 // the body of a request with a tool list; no body is larger
	MaxBody       = 1 << 20        // the body of a request with a server document
	MaxRecordBody = 32 << 10       // the body of a request with a token, a comment or another record
	MaxSecretBody = 16 << 10       // the body of a request that anybody may send to sign in, and of the like
	maxHeader     = 16 << 10
)
