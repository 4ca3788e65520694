package maxmind

// Config names the databases (contract A-30). Each database is optional.
type Config struct {
	CityDB string `env:"GEOIP_CITY_DB" desc:"MaxMind DB file with country and coordinates of addresses, for example GeoLite2-City.mmdb; reloaded on change"`
	ASNDB  string `env:"GEOIP_ASN_DB" desc:"MaxMind DB file with the networks of addresses, for example GeoLite2-ASN.mmdb; used only in the audit log"`
}

// Files returns the paths of the databases.
func (c Config) Files() []string {
	var files []string
	for _, path := range []string{c.CityDB, c.ASNDB} {
		if path != "" {
			files = append(files, path)
		}
	}
	return files
}
