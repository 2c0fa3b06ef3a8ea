// Versions that are beside this one, with their pages; tools/docs writes the list when it publishes several.
var rodeoVersions = {}
