// docs/outbox.md#descriptions: what the metadata of OData services says of their entity sets, and documents that are none.
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct ODataModelTests {
    /// A document with these elements in its only schema.
    private static func document(_ elements: String, version: String = "4.0", schema: String = "") -> String {
        """
        <?xml version="1.0" encoding="utf-8"?>
        <edmx:Edmx Version="\(version)" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx"><edmx:DataServices>
        <Schema Namespace="Shop.Model" \(schema) xmlns="http://docs.oasis-open.org/odata/ns/edm">\(elements)</Schema>
        </edmx:DataServices></edmx:Edmx>
        """
    }

    private static func type(_ name: String, key: String, _ type: String, _ attributes: String = "") -> String {
        """
        <EntityType Name="\(name)" \(attributes)><Key><PropertyRef Name="\(key)"/></Key>\
        <Property Name="\(key)" Type="\(type)" Nullable="false"/><Property Name="Name" Type="Edm.String"/></EntityType>
        """
    }

    private static func container(_ sets: String, _ attributes: String = "") -> String {
        #"<EntityContainer Name="Container" \#(attributes)>\#(sets)</EntityContainer>"#
    }

    private static func set(_ name: String = "Products", of type: String = "Shop.Model.Product", _ inner: String = "") -> String {
        #"<EntitySet Name="\#(name)" EntityType="\#(type)">\#(inner)</EntitySet>"#
    }

    private static let closed = """
        <Annotation Term="Org.OData.Capabilities.V1.InsertRestrictions"><Record>\
        <PropertyValue Property="Insertable" Bool="false"/></Record></Annotation>
        """

    private static func described(_ text: String, target: String = "/odata/$metadata") -> APIDescription? {
        APIDescription(Array(text.utf8), target: target) { try? JSONValue.parse($0) }
    }

    private static let product = type("Product", key: "ProductID", "Edm.Int32")

    @Test(
        arguments: [
            (document(product + container(set())), "/Products({id}) items /value id /ProductID creates", .number),
            (document(product + container(set()), version: "1.0"), "/Products({id}) items /value id /ProductID creates", .number),
            (
                document(type("Product", key: "Code", "Edm.String") + container(set())),
                "/Products('{id}') items /value id /Code creates", .text
            ),
            (document(type("Product", key: "ID", "Edm.Guid") + container(set())), "/Products({id}) items /value id /ID creates", .uuid),
            (document(type("Product", key: "ID", "Edm.Int64") + container(set())), "/Products({id}) items /value id /ID creates", .number),
            // The container first, an alias, and a key of the base.
            (
                document(container(set(of: "Self.Product")) + product, schema: #"Alias="Self""#),
                "/Products({id}) items /value id /ProductID creates", .number
            ),
            (
                document(
                    type("Thing", key: "ID", "Edm.Int32", #"Abstract="true""#)
                        + #"<EntityType Name="Product" BaseType="Shop.Model.Thing"/>"# + container(set())),
                "/Products({id}) items /value id /ID creates", .number
            ),
            // Sets that take no new entities, as they say themselves or from outside.
            (document(product + container(set("Products", closed))), "/Products({id}) items /value id /ProductID", .number),
            (
                document(product + container(set()) + #"<Annotations Target="Shop.Model.Container/Products">\#(closed)</Annotations>"#),
                "/Products({id}) items /value id /ProductID", .number
            ),
        ] as [(String, String, IdentifierForm)])
    func aSetIsKnownByItsKey(document: String, known: String, ids: IdentifierForm) throws {
        let description = try #require(Self.described(document))
        #expect(description.paths == ["/odata/Products"])
        for list in [#"{"@odata.context":"$metadata#Products","value":[]}"#, #"{"value":[{"ID":1,"ProductID":1,"Code":"a","Name":"x"}]}"#] {
            var learner = ResourceLearner()
            #expect(learner.note(description, owner: "anna").isEmpty)
            #expect(learner.note(.get("/odata/Products?$top=5", list)) == [.learned("/odata/Products")])
            #expect(learner.words == ["/odata/Products /odata" + known])
        }
        let collection = try #require(description.collections.first)
        #expect(collection.ids == ids && APIDescription(json: description.json) == description)
    }

    @Test func anAnswerThatIsNoSuchEntityContradictsIt() throws {
        let description = try #require(Self.described(Self.document(Self.product + Self.container(Self.set()))))
        var learner = ResourceLearner()
        _ = learner.note(description, owner: "anna")
        _ = learner.note(.get("/odata/Products", #"{"value":[]}"#))
        #expect(learner.note(.get("/odata/Products(7)", #"{"ProductID":7,"Name":"a"}"#, [.eTag: "\"1\""])).isEmpty)
        #expect(learner.words.count == 1)
        #expect(learner.note(.get("/odata/Products(8)", #"{"d":{"ProductID":8}}"#)).count == 1)
        #expect(learner.words.isEmpty)
    }

    @Test func theVerboseFormOfAListIsNotKnownByTheMetadataAlone() throws {
        let description = try #require(Self.described(Self.document(Self.product + Self.container(Self.set()), version: "1.0")))
        var learner = ResourceLearner()
        _ = learner.note(description, owner: "anna")
        #expect(learner.note(.get("/odata/Products", #"{"d":{"results":[{"ProductID":1,"Name":"a"}]}}"#)).isEmpty)
    }

    @Test(
        .timeLimit(.minutes(1)),
        arguments: [
            // Keys that paths do not spell as bodies do, several keys, and none.
            document(type("Product", key: "At", "Edm.Date") + container(set())),
            document(type("Product", key: "ID", "Edm.Guid") + container(set()), version: "1.0"),
            document(type("Product", key: "ID", "Edm.Int64") + container(set()), version: "1.0"),
            document(product.replacing("</Key>", with: #"<PropertyRef Name="Name"/></Key>"#) + container(set())),
            document(#"<EntityType Name="Product"/>"# + container(set())), document(container(set())),
            document(product.replacing("Property Name=\"ProductID\"", with: "Property Name=\"Other\"") + container(set())),
            // Types in circles.
            document(
                #"<EntityType Name="Product" BaseType="Shop.Model.B"/><EntityType Name="B" BaseType="Shop.Model.Product"/>"#
                    + container(set())),
            // Sets that have other paths.
            document(product + container(set(), #"m:IsDefaultEntityContainer="false" xmlns:m="m""#)),
            document(product + container(set("a/../b"))), document(product + container(set("a?b"))), document(product + container(set(""))),
            // Documents of another kind, of an unknown version, with a type of their own, and broken ones.
            document(product + container(set()), version: "2.0"), "<html><body/></html>", "<Edmx", "<", "",
            #"<!DOCTYPE Edmx [<!ENTITY a "&b;&b;"><!ENTITY b "xx">]><Edmx Version="4.0">&a;</Edmx>"#,
            document(product + container(set())) + "<more/>", String(document(product + container(set())).dropLast(20)),
            document(product + container(set()) + String(repeating: "<a>", count: 200) + String(repeating: "</a>", count: 200)),
        ])
    func whatDescribesNoCollectionIsNone(document: String) {
        #expect(Self.described(document) == nil)
    }

    @Test func manySetsAreBounded() {
        let sets = (0..<2_000).map { Self.set("Set\($0)") }.joined()
        let description = Self.described(Self.document(Self.product + Self.container(sets)))
        #expect(description?.collections.count == APIDescription.collectionLimit)
    }

    @Test(arguments: [
        ("/odata/$metadata", true), ("/$metadata", true), ("/odata/%24metadata", true), ("/odata/Products", false),
        ("/$metadata/x", false), ("/", false),
    ])
    func metadataIsKnownByItsName(path: String, isMetadata: Bool) {
        #expect(APIDescription.isMetadata(path) == isMetadata)
    }

    @Test func aServiceAtTheRootHasItsSetsThere() {
        let text = Self.document(Self.product + Self.container(Self.set()))
        #expect(Self.described(text, target: "/$metadata?$format=xml")?.paths == ["/Products"])
        #expect(Self.described(text, target: "/a/b/$metadata")?.paths == ["/a/b/Products"])
    }
}
