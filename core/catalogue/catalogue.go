// Package catalogue is the model of the open-data methods listing: the methods
// that the API offers, by id.
package catalogue

// MethodID is the id of a method.
type MethodID int

// ServiceID is the id of the service a method belongs to.
type ServiceID int

// Method is one entry of the listing.
type Method struct {
	ID          MethodID
	Path        string // a template below the API root, such as /api/usage.{format}
	ServiceID   ServiceID
	ServiceName string
	Parameters  []string // the path parameters, in the order of the path
}

// ListingID is the id of the listing itself (decisions 4).
const ListingID MethodID = 1103
