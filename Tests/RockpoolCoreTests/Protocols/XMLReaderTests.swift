// XML of others (https://www.w3.org/TR/xml/): places in the document, limits, and what is refused.
import Glibc
import Testing

@testable import RockpoolCore

@Suite struct XMLReaderTests {
    private func tags(_ text: String, encoding: String? = nil) throws -> [XMLReader.Tag] {
        var tags: [XMLReader.Tag] = []
        try XMLReader.read(Array(text.utf8), encoding: encoding) { tag in
            tags.append(tag)
            return true
        }
        return tags
    }

    private func failure(_ text: String) -> XMLReader.Failure? {
        do { _ = try tags(text) } catch { return error as? XMLReader.Failure }
        return nil
    }

    @Test func tagsAreAtTheirPlaces() throws {
        let text = "<?xml version='1.0'?><!-- <x> --><D:a y='>' xmlns:D=\"DAV:\"><b/><c >é&amp;<![CDATA[<z>]]>&#233;</c ><e\n/></D:a>\n"
        let tags = try tags(text)
        let written = tags.map { String(decoding: Array(text.utf8)[$0.range], as: UTF8.self) }
        #expect(written == ["<D:a y='>' xmlns:D=\"DAV:\">", "<b/>", "", "<c >", "</c >", "<e\n/>", "", "</D:a>"])
        #expect(tags.map(\.path) == [["a"], ["a", "b"], ["a", "b"], ["a", "c"], ["a", "c"], ["a", "e"], ["a", "e"], ["a"]])
        #expect(tags.map(\.isStart) == [true, true, false, true, false, true, false, false])
        #expect(tags[4].text == "é&<z>é" && tags[0].attributes.map { "\($0)=\($1)" } == ["y=>", "xmlns:D=DAV:"])
        for tag in tags where !tag.isStart && tag.range.isEmpty { #expect(Array(text.utf8)[tag.range.lowerBound - 1] == UInt8(ascii: ">")) }
    }

    /// Entities, an external one among them, and their kin need a document type.
    @Test(arguments: [
        "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>",
        "<!DOCTYPE a [<!ENTITY % b SYSTEM \"http://x/\">%b;]><a/>", "<!DOCTYPE a [<!ATTLIST a b CDATA \"c\">]><a/>", "<!DOCTYPE a><a/>",
    ])
    func aDocumentTypeEndsTheReading(_ text: String) { #expect(failure(text) == .hasDocumentType(name: "a")) }

    @Test(arguments: [
        "", " ", "{}", "<a>", "<a></b>", "<a>&b;</a>", "<a/><a/>", "<a b=1/>", "<a b='1' b='2'/>", "<a>\u{1}</a>", "<a", "a<b/>",
    ])
    func whatIsNoDocumentIsNotRead(_ text: String) { #expect(failure(text) == .malformed) }

    @Test func limitsHold() {
        let nested = { (depth: Int) in String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth) }
        #expect(failure(nested(XMLReader.depthLimit)) == nil && failure(nested(XMLReader.depthLimit + 1)) == .tooLarge)
        #expect(failure(nested(100_000)) == .tooLarge)
        let many = { (count: Int) in "<a>" + String(repeating: "<b/>", count: count) + "</a>" }
        #expect(failure(many(XMLReader.elementLimit)) == .tooLarge)
        #expect(failure("<a>" + String(repeating: " ", count: XMLReader.byteLimit) + "</a>") == .tooLarge)
    }

    /// The time that this thread computes: others take turns with it.
    private func processorTime(of work: () -> Void) -> Duration {
        var (start, end) = (timespec(), timespec())
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
        work()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        return .seconds(end.tv_sec - start.tv_sec) + .nanoseconds(end.tv_nsec - start.tv_nsec)
    }

    /// What took the square of its length: closing tags, attributes, an open quote, comments and references of any number.
    @Test(arguments: ["<a></a>", "<a b='c'/>", "<!---->", "<![CDATA[]]>", "&amp;", "<?p?>", "<a:b xmlns:a='c'/>", "<a>&#233;</a> ]] >"])
    func fourTimesTheLengthIsNotSixteenTimesTheTime(_ piece: String) throws {
        let time = { (bytes: Int) in
            let text = Array(("<r>" + String(repeating: piece, count: bytes / piece.utf8.count) + "</r>").utf8)
            return (0..<3).map { _ in processorTime { _ = try? XMLReader.read(text) { _ in true } } }.min() ?? .zero
        }
        let (short, long) = (time(128 << 10), time(512 << 10))
        #expect(long < short * 10 + .milliseconds(20), "\(piece): \(short), \(long)")
    }

    @Test func aReadingEndsWithItsTask() async {
        let text = Array(("<r>" + String(repeating: "<a/>", count: 100_000) + "</r>").utf8)
        let task = Task { () -> (Int, XMLReader.Failure?) in
            withUnsafeCurrentTask { $0?.cancel() }
            var (count, failure) = (0, XMLReader.Failure?.none)
            do throws(XMLReader.Failure) {
                try XMLReader.read(text) { _ in
                    count += 1
                    return true
                }
            } catch { failure = error }
            return (count, failure)
        }
        let (count, failure) = await task.value
        #expect(failure == .cancelled && count < 4_096)
    }

    @Test func whatPrecedesAFaultIsVisitedAndNothingBehindAStop() throws {
        var names: [String] = []
        #expect(throws: XMLReader.Failure.malformed) {
            try XMLReader.read(Array("<a><b/><c></a>".utf8)) { tag in
                names.append(tag.name)
                return true
            }
        }
        #expect(names == ["a", "b", "b", "c"])
        names = []
        try XMLReader.read(Array("<a><b/><c></a>".utf8)) { tag in
            names.append(tag.name)
            return tag.name != "b"
        }
        #expect(names == ["a", "b"])
    }

    @Test(arguments: [
        ("<?xml version='1.0'?><!-- x --><m:methodCall>", "methodCall"), ("\r\n <s:Envelope xmlns:s='x'/>", "Envelope"),
        ("<!DOCTYPE m:methodCall SYSTEM 'x'><m:methodCall/>", "methodCall"), ("\u{FEFF}<a>", "a"),
        ("<?xml version='1.0' encoding='windows-1252'?><a>", "a"), ("a", nil), ("", nil), ("<!-- <a> -->", nil),
    ])
    func theRootIsKnownFromTheStart(_ text: String, _ root: String?) { #expect(XMLReader.root(of: Array(text.utf8)) == root) }

    @Test(arguments: ["a&b<c>d\"e'f", "é\u{7}\t", "]]>"]) func textIsWrittenAsItIsRead(_ text: String) throws {
        let (inner, value) = (XMLText.encoded(text), XMLText.attribute(text.replacing("\t", with: " ")))
        let document = "<a b=\"\(String(decoding: value, as: UTF8.self))\">\(String(decoding: inner, as: UTF8.self))</a>"
        let tags = try tags(document)
        #expect(tags[1].text == text.replacing("\u{7}", with: ""))
        #expect(tags[0].attributes.first?.value == text.replacing("\u{7}", with: "").replacing("\t", with: " "))
    }
}
